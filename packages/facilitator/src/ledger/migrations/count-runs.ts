import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/** Counts the handler runs of a payment. Runs before this step are not counted. */
export async function countRuns<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await transaction.schema
    .alterTable("payments")
    .addColumn("runs", types.integer, (column) => column.notNull().defaultTo(0))
    .execute();
}
