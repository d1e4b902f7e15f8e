import { type RawBuilder, type SqlBool, sql, type Transaction } from "kysely";
import { type OutboxContext, tableOf } from "./outbox-context.ts";

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
 * @param step.after number of the event where the last step has ended, 0 at first
 * @param step.maxRead events of a step, also of those that are not in the range
 * @returns the number of deliveries, and where to go on, if there may be more
 */
export async function replayDeliveries<Schema>(
  outbox: OutboxContext<Schema>,
  range: ReplayRange,
  step: { after: number; limit: number; maxRead?: number },
): Promise<{ replayed: number; next: number | undefined }> {
  return outbox.write(async (transaction) => {
    const { found, next } = await findEvents(outbox, transaction, { ...step, range });
    const first = found[0];
    const last = found.at(-1);
    if (first === undefined || last === undefined) return { replayed: 0, next };
    const { rows } = await sql<{ event_seq: number }>`
      update ${tableOf(outbox, "deliveries")}
      set state = 'pending', attempts = 0, next_at = 0, claim = null, error = null, ended_at = null
      where event_seq >= ${first} and event_seq <= ${last}
        and ended_at is not null and ${isOfState(range)}
        and endpoint_id in (select id from ${tableOf(outbox, "endpoints")} where is_enabled = 1)
        and ${isOfEndpoint(range)}
        and event_seq in (
          select seq from ${tableOf(outbox, "events")} where seq >= ${first} and seq <= ${last}
            and ${inRange(range)}
        )
      returning event_seq
    `.execute(transaction);
    return { replayed: rows.length, next };
  });
}

/** Numbers of events in the range, and the last one that was read, where more may follow. */
async function findEvents<Schema>(
  outbox: OutboxContext<Schema>,
  transaction: Transaction<Schema>,
  step: { range: ReplayRange; after: number; limit: number; maxRead?: number },
): Promise<{ found: number[]; next: number | undefined }> {
  const { range, after, limit, maxRead = 20_000 } = step;
  const only = range.event === undefined ? sql`1 = 1` : sql`seq = ${range.event.seq}`;
  const read = sql`
    select seq, id, created_at from ${tableOf(outbox, "events")} where seq > ${after} and ${only}
    order by seq limit ${maxRead}
  `;
  const { rows } = await sql<{ seq: number }>`
    select seq from (${read}) as events where ${inRange(range)} order by seq limit ${limit}
  `.execute(transaction);
  const found = rows.map(({ seq }) => seq);
  if (found.length === limit) return { found, next: found.at(-1) };
  const { rows: ends } = await sql<{ count: number; last: number | null }>`
    select count(*) as count, max(seq) as last from (${read}) as events
  `.execute(transaction);
  const [end] = ends;
  return { found, next: end?.count === maxRead ? (end.last ?? undefined) : undefined };
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
