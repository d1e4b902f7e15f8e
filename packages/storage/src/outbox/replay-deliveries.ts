import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { OutboxContext } from "./outbox-context.ts";

/** Deliveries that have ended. */
export interface ReplayRange {
  /** Default: all endpoints. */
  endpoint?: string | undefined;
  /** Number and id of one event. */
  event?: { seq: number; id: string } | undefined;
  /** Unix milliseconds of the event: from, and before. */
  from?: number | undefined;
  to?: number | undefined;
  /** Default: delivered ones, too. */
  deadOnly?: boolean | undefined;
}

/**
 * Makes deliveries pending again that have ended, in the order of their events: one step of at most
 * `limit`. Deliveries under way are left alone, and so are those of endpoints that are not enabled.
 *
 * @param after number of the event where the last step has ended, 0 at first
 * @returns the number of deliveries, and where to go on, if there may be more
 */
export async function replayDeliveries<Schema>(
  outbox: OutboxContext<Schema>,
  range: ReplayRange,
  { after, limit }: { after: number; limit: number },
): Promise<{ replayed: number; next: number | undefined }> {
  return outbox.write(async (transaction) => {
    const { rows: found } = await sql<{ seq: number }>`
      select seq from outbox_events where seq > ${after} and ${inRange(range)}
      order by seq limit ${limit}
    `.execute(transaction);
    const first = found[0]?.seq;
    const last = found.at(-1)?.seq;
    if (first === undefined || last === undefined) return { replayed: 0, next: undefined };
    const { rows } = await sql<{ event_seq: number }>`
      update outbox_deliveries
      set state = 'pending', attempts = 0, next_at = 0, claim = null, error = null, ended_at = null
      where event_seq >= ${first} and event_seq <= ${last}
        and ended_at is not null and ${isOfState(range)}
        and endpoint_id in (select id from outbox_endpoints where is_enabled = 1)
        and ${isOfEndpoint(range)}
        and event_seq in (
          select seq from outbox_events where seq >= ${first} and seq <= ${last}
            and ${inRange(range)}
        )
      returning event_seq
    `.execute(transaction);
    return { replayed: rows.length, next: found.length === limit ? last : undefined };
  });
}

function inRange({ event, from = 0, to }: ReplayRange): RawBuilder<SqlBool> {
  if (event !== undefined) return sql<SqlBool>`seq = ${event.seq} and id = ${event.id}`;
  const before = to === undefined ? sql<SqlBool>`1 = 1` : sql<SqlBool>`created_at < ${to}`;
  return sql<SqlBool>`created_at >= ${from} and ${before}`;
}

function isOfState({ deadOnly = false }: ReplayRange): RawBuilder<SqlBool> {
  return deadOnly ? sql<SqlBool>`state = 'dead'` : sql<SqlBool>`state <> 'pending'`;
}

function isOfEndpoint({ endpoint }: ReplayRange): RawBuilder<SqlBool> {
  return endpoint === undefined ? sql<SqlBool>`1 = 1` : sql<SqlBool>`endpoint_id = ${endpoint}`;
}
