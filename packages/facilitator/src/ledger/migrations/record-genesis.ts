import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/** The chain of each network, by its first block. A ledger without a row takes the one it meets. */
export async function recordGenesis<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await transaction.schema
    .createTable("chains")
    .addColumn("network", types.text, (column) => column.primaryKey())
    .addColumn("genesis_hash", types.text, (column) => column.notNull())
    .execute();
}
