import { sql, type Transaction } from "kysely";
import { amongNumbers, forProcess, type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/** A delivery that this process may post until its claim ends. */
export interface ClaimedDelivery {
  seq: number;
  /** The same in every attempt, and in no other event. */
  id: string;
  key: string;
  type: string;
  /** JSON. */
  payload: string;
  /** Unix milliseconds, on the database's clock. */
  createdAt: number;
  /** Attempts that have failed. */
  attempts: number;
}

/**
 * A claim puts off a delivery that waits for an earlier one. It does so for `underWayMs` while that
 * one is under way, also in a claim that is not committed. Else it does so until `failedMs` after
 * the next attempt of that one. So a receiver that is down costs one look for each attempt, however
 * many deliveries wait. The conclusion of the earlier one recalls them. It may come before the
 * put-off is committed: so times are bounded.
 */
const underWayMs = 1_000;
const failedMs = 30_000;

/**
 * Claims deliveries of an endpoint that are due: the first one of each key, oldest first.
 *
 * The racers are other processes with the same endpoint. Each locks the rows that it looks at, and
 * skips those of the others.
 *
 * @param wish `claim`: name of this process, new at each start. `claimMs`: longest time of a POST,
 * with a margin
 * @returns `mayBeMore`: as many were due as were asked for
 */
export async function claimDeliveries<Schema>(
  outbox: OutboxContext<Schema>,
  wish: { endpoint: string; claim: string; claimMs: number; limit: number },
): Promise<{ deliveries: ClaimedDelivery[]; mayBeMore: boolean }> {
  // Outside of a transaction first: an outbox at rest costs no write lock.
  if (!(await isAnyDue(outbox, wish.endpoint))) return { deliveries: [], mayBeMore: false };
  return outbox.write(async (transaction) => {
    const due = await lockDue(outbox, transaction, wish);
    const seqsOf = (isFirst: number) =>
      due.flatMap(({ event_seq, is_first }) => (is_first === isFirst ? event_seq : []));
    await putOff(outbox, transaction, { ...wish, seqs: seqsOf(0) });
    const deliveries = await claim(outbox, transaction, { ...wish, seqs: seqsOf(1) });
    return { deliveries, mayBeMore: due.length === wish.limit };
  }, forProcess);
}

async function isAnyDue<Schema>(outbox: OutboxContext<Schema>, endpoint: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from ${tableOf(outbox, "deliveries")}
    where endpoint_id = ${endpoint} and state = 'pending' and next_at <= ${timeOf(outbox)}
    limit 1
  `.execute(outbox.db);
  return rows.length > 0;
}

interface DueRow {
  event_seq: number;
  /** 1: the first one of its key. 0: it waits for an earlier one. */
  is_first: number;
}

async function lockDue<Schema>(
  outbox: OutboxContext<Schema>,
  transaction: Transaction<Schema>,
  { endpoint, limit }: { endpoint: string; limit: number },
): Promise<DueRow[]> {
  const lock = outbox.dialect.engine === "sqlite" ? sql`` : sql`for update of due skip locked`;
  const { rows } = await sql<DueRow>`
    select due.event_seq, case when exists (
      select 1 from ${tableOf(outbox, "deliveries")} as head
      where head.endpoint_id = due.endpoint_id and head.key = due.key
        and head.state = 'pending' and head.event_seq < due.event_seq
    ) then 0 else 1 end as is_first
    from ${tableOf(outbox, "deliveries")} as due
    where due.endpoint_id = ${endpoint} and due.state = 'pending'
      and due.next_at <= ${timeOf(outbox)}
    order by due.next_at, due.event_seq
    limit ${limit}
    ${lock}
  `.execute(transaction);
  return rows;
}

/** So that they are not looked at in every claim. Without an earlier one by now, they are due. */
async function putOff<Schema>(
  outbox: OutboxContext<Schema>,
  transaction: Transaction<Schema>,
  { endpoint, seqs }: { endpoint: string; seqs: readonly number[] },
): Promise<void> {
  if (seqs.length === 0) return;
  const now = timeOf(outbox);
  await sql`
    update ${tableOf(outbox, "deliveries")} set next_at = coalesce((
      select case when head.claim is null and head.next_at > ${now}
        then head.next_at + ${sql.lit(failedMs)} else ${now} + ${sql.lit(underWayMs)} end
      from ${tableOf(outbox, "deliveries")} as head
      where head.endpoint_id = ${tableOf(outbox, "deliveries")}.endpoint_id and head.key = ${tableOf(outbox, "deliveries")}.key
        and head.state = 'pending' and head.event_seq < ${tableOf(outbox, "deliveries")}.event_seq
      order by head.event_seq limit 1
    ), 0)
    where endpoint_id = ${endpoint} and event_seq in ${amongNumbers(outbox.dialect, seqs)}
  `.execute(transaction);
}

async function claim<Schema>(
  outbox: OutboxContext<Schema>,
  transaction: Transaction<Schema>,
  wish: { endpoint: string; claim: string; claimMs: number; seqs: readonly number[] },
): Promise<ClaimedDelivery[]> {
  const { endpoint, seqs } = wish;
  if (seqs.length === 0) return [];
  const among = amongNumbers(outbox.dialect, seqs);
  await sql`
    update ${tableOf(outbox, "deliveries")}
    set claim = ${wish.claim}, next_at = ${timeOf(outbox)} + ${sql.lit(wish.claimMs)}
    where endpoint_id = ${endpoint} and event_seq in ${among}
  `.execute(transaction);
  const { rows } = await sql<ClaimedDelivery>`
    select events.seq as seq, events.id as id, events.key as key, events.type as type,
      events.payload as payload, events.created_at as "createdAt",
      deliveries.attempts as attempts
    from ${tableOf(outbox, "deliveries")} as deliveries join ${tableOf(outbox, "events")} as events
      on events.seq = deliveries.event_seq
    where deliveries.endpoint_id = ${endpoint} and deliveries.event_seq in ${among}
    order by events.seq
  `.execute(transaction);
  return rows;
}
