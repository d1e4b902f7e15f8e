import { sql } from "kysely";
import { forProcess, type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/**
 * Makes deliveries due that wait longer than any can: the database's clock was put back.
 *
 * @param longest claim, and wait between two attempts
 */
export async function healClock<Schema>(
  outbox: OutboxContext<Schema>,
  { endpoint, claimMs, waitMs }: { endpoint: string; claimMs: number; waitMs: number },
): Promise<void> {
  await outbox.write(
    (transaction) =>
      sql`
        update ${tableOf(outbox, "deliveries")} set next_at = 0
        where endpoint_id = ${endpoint} and state = 'pending' and (
          next_at > ${timeOf(outbox)} + ${sql.lit(waitMs)}
          or (claim is not null and next_at > ${timeOf(outbox)} + ${sql.lit(claimMs)})
        )
      `.execute(transaction),
    forProcess,
  );
}
