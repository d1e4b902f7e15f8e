import { sql } from "kysely";
import { amongNumbers, forProcess, type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/**
 * Deletes deliveries that ended long ago, and events without a delivery that is left: one step.
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
  const seqs = [...(await old("delivered", deliveredMs)), ...(await old("dead", deadMs))];
  if (seqs.length === 0) return false;
  const among = amongNumbers(dialect, seqs);
  const isOld = sql`(state = 'delivered' and ended_at < ${timeOf(outbox)} - ${sql.lit(deliveredMs)})
    or (state = 'dead' and ended_at < ${timeOf(outbox)} - ${sql.lit(deadMs)})`;
  await write(async (transaction) => {
    await sql`
      delete from ${tableOf(outbox, "deliveries")} where event_seq in ${among} and (${isOld})
    `.execute(transaction);
    // A replay that comes in between has its delivery again, and keeps its event.
    await sql`
      delete from ${tableOf(outbox, "events")} where seq in ${among}
        and not exists (select 1 from ${tableOf(outbox, "deliveries")} where event_seq = ${tableOf(outbox, "events")}.seq)
    `.execute(transaction);
  }, forProcess);
  return seqs.length >= limit;
}
