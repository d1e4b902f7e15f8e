import { sql } from "kysely";
import { amongNumbers, forProcess, type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/**
 * Deletes deliveries that ended long ago, and events without a delivery that is left: one step.
 * What is pending of a removed endpoint goes when its event is older than `deadMs`.
 *
 * @returns whether there may be more
 */
export async function pruneDeliveries<Schema>(
  outbox: OutboxContext<Schema>,
  { deliveredMs, deadMs, limit }: { deliveredMs: number; deadMs: number; limit: number },
): Promise<boolean> {
  const { dialect, db, write } = outbox;
  const old = async (state: "delivered" | "dead", keptMs: number) => {
    const { rows } = await sql<{ event_seq: number }>`
      select event_seq from ${tableOf(outbox, "deliveries")}
      where state = ${sql.lit(state)} and ended_at < ${timeOf(outbox)} - ${sql.lit(keptMs)}
      order by ended_at limit ${limit}
    `.execute(db);
    return rows.map(({ event_seq }) => event_seq);
  };
  const unclaimed = await findUnclaimed(outbox, { keptMs: deadMs, limit });
  const ended = [...(await old("delivered", deliveredMs)), ...(await old("dead", deadMs))];
  const seqs = [...unclaimed, ...ended];
  if (seqs.length === 0) return false;
  const among = amongNumbers(dialect, seqs);
  const isOld = sql`(state = 'delivered' and ended_at < ${timeOf(outbox)} - ${sql.lit(deliveredMs)})
    or (state = 'dead' and ended_at < ${timeOf(outbox)} - ${sql.lit(deadMs)})`;
  await write(async (transaction) => {
    await sql`
      delete from ${tableOf(outbox, "deliveries")} where event_seq in ${among} and (${isOld})
    `.execute(transaction);
    // An endpoint that comes back in between keeps what is pending.
    await sql`
      delete from ${tableOf(outbox, "deliveries")}
      where event_seq in ${amongNumbers(dialect, unclaimed)} and ${isOfRemoved(outbox)}
    `.execute(transaction);
    // A replay that comes in between has its delivery again, and keeps its event.
    await sql`
      delete from ${tableOf(outbox, "events")} where seq in ${among}
        and not exists (select 1 from ${tableOf(outbox, "deliveries")} where event_seq = ${tableOf(outbox, "events")}.seq)
    `.execute(transaction);
  }, forProcess);
  return seqs.length >= limit;
}

function isOfRemoved<Schema>(outbox: OutboxContext<Schema>) {
  return sql`state = 'pending' and endpoint_id in (
    select id from ${tableOf(outbox, "endpoints")} where is_enabled = 0
  )`;
}

/** Events long ago of which something is pending that no process may claim. */
async function findUnclaimed<Schema>(
  outbox: OutboxContext<Schema>,
  { keptMs, limit }: { keptMs: number; limit: number },
): Promise<number[]> {
  // Few events are older: those whose deliveries have ended are deleted.
  const { rows: newest } = await sql<{ seq: number }>`
    select seq from ${tableOf(outbox, "events")}
    where created_at < ${timeOf(outbox)} - ${sql.lit(keptMs)}
    order by created_at desc, seq desc limit 1
  `.execute(outbox.db);
  if (newest[0] === undefined) return [];
  const { rows } = await sql<{ event_seq: number }>`
    select event_seq from ${tableOf(outbox, "deliveries")}
    where event_seq <= ${newest[0].seq} and ${isOfRemoved(outbox)}
      and (
        select created_at from ${tableOf(outbox, "events")} where seq = event_seq
      ) < ${timeOf(outbox)} - ${sql.lit(keptMs)}
    order by event_seq limit ${limit}
  `.execute(outbox.db);
  return rows.map(({ event_seq }) => event_seq);
}
