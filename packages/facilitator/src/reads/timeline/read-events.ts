import { shownUrl, webhookIdOf } from "@coinslot/webhooks";
import { sql } from "kysely";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { toIso } from "../wire-forms.ts";
import type { PaymentTimeline } from "./timeline-result.ts";

type EventRecord = PaymentTimeline["events"][number];

/** Events of one payment, at most. */
const maxEvents = 200;

interface EventRow {
  seq: number;
  id: string;
  type: string;
  created_at: number;
}

interface DeliveryRow {
  event_seq: number;
  endpoint_id: string;
  url: string | null;
  state: string;
  attempts: number;
  error: string | null;
  ended_at: number | null;
}

/** The events of a payment, with what has become of each delivery. */
export async function readEvents({ db }: LedgerReads, payment: string): Promise<EventRecord[]> {
  const { rows: events } = await sql<EventRow>`
    select seq, id, type, created_at from outbox_events where key = ${payment}
    order by seq limit ${sql.lit(maxEvents)}
  `.execute(db);
  if (events.length === 0) return [];
  const { rows: deliveries } = await sql<DeliveryRow>`
    select event_seq, endpoint_id, url, state, attempts, error, ended_at
    from outbox_deliveries left join outbox_endpoints on outbox_endpoints.id = endpoint_id
    where event_seq in (${sql.join(events.map(({ seq }) => seq))})
    order by event_seq, endpoint_id
  `.execute(db);
  return events.map((event) => ({
    id: webhookIdOf(event),
    type: event.type,
    at: new Date(event.created_at).toISOString(),
    deliveries: deliveries
      .filter(({ event_seq }) => event_seq === event.seq)
      .map(({ endpoint_id, url, state, attempts, error, ended_at }) => ({
        receiver: endpoint_id,
        url: url && shownUrl(url),
        state,
        attempts,
        error,
        endedAt: toIso(ended_at),
      })),
  }));
}
