import { sql } from "kysely";
import { forProcess, type OutboxContext, tableOf } from "./outbox-context.ts";

/**
 * Ends every claim of an endpoint. For a process that knows all other ones dead, such as the holder
 * of a file's lock.
 */
export async function releaseClaims<Schema>(
  outbox: OutboxContext<Schema>,
  endpoint: string,
): Promise<void> {
  await outbox.write(
    (transaction) =>
      sql`
        update ${tableOf(outbox, "deliveries")} set claim = null, next_at = 0
        where endpoint_id = ${endpoint} and state = 'pending' and claim is not null
      `.execute(transaction),
    forProcess,
  );
}
