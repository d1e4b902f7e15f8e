import { type RawBuilder, type SqlBool, sql } from "kysely";
import { amongNumbers, forProcess, type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/**
 * Ends deliveries that were due for long, and that no process has claimed: one step. They are dead,
 * so a replay makes them pending again. Their endpoint is enabled, and no process serves it. Such
 * deliveries have no attempt to fail, so nothing else ends them.
 *
 * @returns their number by endpoint; empty: there are no more
 */
export async function giveUpUntaken<Schema>(
  outbox: OutboxContext<Schema>,
  { untakenMs, limit }: { untakenMs: number; limit: number },
): Promise<Map<string, number>> {
  const ended = new Map<string, number>();
  // Few events are older: those whose deliveries have ended are deleted.
  const { rows: newest } = await sql<{ seq: number }>`
    select seq from ${tableOf(outbox, "events")}
    where created_at < ${timeOf(outbox)} - ${sql.lit(untakenMs)}
    order by created_at desc, seq desc limit 1
  `.execute(outbox.db);
  const last = newest[0]?.seq;
  if (last === undefined) return ended;
  const { rows: endpoints } = await sql<{ id: string }>`
    select id from ${tableOf(outbox, "endpoints")} where is_enabled = 1 order by id
  `.execute(outbox.db);
  // Two conditions, each a part of the index: most have never been claimed.
  const conditions = [
    sql<SqlBool>`next_at = 0`,
    sql<SqlBool>`next_at > 0 and next_at < ${timeOf(outbox)} - ${sql.lit(untakenMs)}`,
  ];
  for (const { id } of endpoints)
    for (const condition of conditions) {
      const count = await end(outbox, { endpoint: id, condition, last, limit });
      if (count > 0) ended.set(id, (ended.get(id) ?? 0) + count);
    }
  return ended;
}

async function end<Schema>(
  outbox: OutboxContext<Schema>,
  wish: { endpoint: string; condition: RawBuilder<SqlBool>; last: number; limit: number },
): Promise<number> {
  const { db, dialect, write } = outbox;
  const deliveries = tableOf(outbox, "deliveries");
  const isUntaken = sql<SqlBool>`endpoint_id = ${wish.endpoint} and state = 'pending'
    and ${wish.condition} and event_seq <= ${wish.last}`;
  const { rows } = await sql<{ event_seq: number }>`
    select event_seq from ${deliveries} where ${isUntaken}
    order by next_at, event_seq limit ${wish.limit}
  `.execute(db);
  if (rows.length === 0) return 0;
  const seqs = rows.map(({ event_seq }) => event_seq);
  return write(async (transaction) => {
    // One that a process has claimed in between is left to it.
    const { rows: changed } = await sql`
      update ${deliveries}
      set state = 'dead', claim = null, error = 'no process delivers to this receiver',
        ended_at = ${timeOf(outbox)}
      where event_seq in ${amongNumbers(dialect, seqs)} and ${isUntaken}
      returning event_seq
    `.execute(transaction);
    return changed.length;
  }, forProcess);
}
