import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/**
 * Writes an event for an enabled endpoint, whatever types it wants. For a test of its receiver.
 *
 * @returns whether there is such an endpoint
 */
export async function appendEvent<Schema>(
  outbox: OutboxContext<Schema>,
  {
    endpoint,
    key,
    type,
    payload,
  }: { endpoint: string; key: string; type: string; payload: string },
): Promise<boolean> {
  const id = randomBytes(8).toString("hex");
  return outbox.write(async (transaction) => {
    const { rows: enabled } = await sql`
      select 1 from ${tableOf(outbox, "endpoints")} where id = ${endpoint} and is_enabled = 1
    `.execute(transaction);
    if (enabled.length === 0) return false;
    const { rows } = await sql<{ seq: number }>`
      insert into ${tableOf(outbox, "events")} (id, key, type, payload, created_at)
      values (${id}, ${key}, ${type}, ${payload}, ${timeOf(outbox)}) returning seq
    `.execute(transaction);
    for (const { seq } of rows) {
      await sql`
        insert into ${tableOf(outbox, "deliveries")} (event_seq, endpoint_id, key, state, attempts, next_at)
        values (${seq}, ${endpoint}, ${key}, 'pending', 0, 0)
      `.execute(transaction);
    }
    return true;
  });
}
