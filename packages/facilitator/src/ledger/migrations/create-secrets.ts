import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/**
 * One row for each secret that the processes of a ledger share. The previous release reads none.
 */
export async function createSecrets<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await transaction.schema
    .createTable("secrets")
    .addColumn("name", types.text, (column) => column.primaryKey().notNull())
    .addColumn("secret", types.text, (column) => column.notNull())
    .execute();
}
