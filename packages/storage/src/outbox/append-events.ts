import { randomBytes } from "node:crypto";
import { sql, type Transaction } from "kysely";
import { type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/** An event for endpoints of its own. */
export interface DirectedEvent {
  key: string;
  type: string;
  /** JSON, an object. */
  payload: string;
  /** Those get it that are enabled, and want its type. */
  endpoints: readonly string[];
}

type Writes<Schema> = Pick<OutboxContext<Schema>, "dialect" | "nowMs" | "tables">;

/** Events of one statement. */
const eventsAtOnce = 500;

/**
 * Writes events, in their order, in the transaction of the state that they tell of: for an owner
 * that decides itself which endpoints an event is for. Its transactions with events of one key must
 * not overlap: the numbers must have the order of the commits.
 */
export async function appendEvents<Schema>(
  outbox: Writes<Schema>,
  transaction: Transaction<Schema>,
  events: readonly DirectedEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const { rows } = await sql<{ type: string; endpoint_id: string }>`
    select type, endpoint_id from ${tableOf(outbox, "subscriptions")}
  `.execute(transaction);
  const wishes = new Set(rows.map(({ type, endpoint_id }) => `${type} ${endpoint_id}`));
  const wanted = events.flatMap((event) => {
    const endpoints = event.endpoints.filter((endpoint) => wishes.has(`${event.type} ${endpoint}`));
    return endpoints.length === 0 ? [] : [{ ...event, endpoints }];
  });
  for (let start = 0; start < wanted.length; start += eventsAtOnce)
    await append(outbox, transaction, wanted.slice(start, start + eventsAtOnce));
}

async function append<Schema>(
  outbox: Writes<Schema>,
  transaction: Transaction<Schema>,
  events: readonly DirectedEvent[],
): Promise<void> {
  const { dialect } = outbox;
  const named = events.map((event) => ({ ...event, id: randomBytes(8).toString("hex") }));
  const source = dialect.records(
    "source",
    { place: "integer", id: "text", key: "text", type: "text", payload: "text" },
    named.map(({ id, key, type, payload }, place) => ({ place, id, key, type, payload })),
  );
  const { rows } = await sql<{ seq: number; id: string }>`
    insert into ${tableOf(outbox, "events")} (id, key, type, payload, created_at)
    select id, key, type, payload, ${timeOf(outbox)} from ${source} where true order by place
    returning seq, id
  `.execute(transaction);
  const seqs = new Map(rows.map(({ seq, id }) => [id, seq]));
  const deliveries = dialect.records(
    "deliveries",
    { seq: "integer", endpoint: "text", key: "text" },
    named.flatMap(({ id, key, endpoints }) => {
      const seq = seqs.get(id);
      return seq === undefined ? [] : endpoints.map((endpoint) => ({ seq, endpoint, key }));
    }),
  );
  await sql`
    insert into ${tableOf(outbox, "deliveries")} (event_seq, endpoint_id, key, state, attempts, next_at)
    select seq, endpoint, key, 'pending', 0, 0 from ${deliveries} where true
  `.execute(transaction);
}
