import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/** One row for each set stop switch. The previous release does not know it, and goes on selling. */
export async function createStops<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await transaction.schema
    .createTable("stops")
    .addColumn("kind", types.text, (column) => column.notNull())
    .addColumn("name", types.text, (column) => column.notNull())
    .addColumn("reason", types.text, (column) => column.notNull())
    .addColumn("stopped_at", types.integer, (column) => column.notNull())
    .addPrimaryKeyConstraint("stops_pkey", ["kind", "name"])
    .execute();
}
