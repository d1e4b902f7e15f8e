import type { Database } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * Runs `work` in a transaction that is on the disk when it resolves. That holds also in a database
 * that does not sync each commit. Transfers can be read from the chain again. A key that was
 * revoked must not come back after a power failure.
 */
export async function writeDurably<Schema, Result>(
  { engine, kysely, transaction }: Database<Schema>,
  work: (transaction: Transaction<Schema>) => Promise<Result>,
): Promise<Result> {
  const result = await transaction(async (tx) => {
    if (engine === "postgres") await sql`set local synchronous_commit to on`.execute(tx);
    return work(tx);
  });
  // Moves the log into the file, and both onto the disk.
  if (engine === "sqlite") await sql`pragma wal_checkpoint(full)`.execute(kysely);
  return result;
}
