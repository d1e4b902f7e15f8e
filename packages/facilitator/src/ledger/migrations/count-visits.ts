import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/**
 * One row for each kind of visit, day and process, so that no two processes write the same row. The
 * previous release does not know it.
 */
export async function countVisits<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await transaction.schema
    .createTable("visits")
    .addColumn("day", types.integer, (column) => column.notNull())
    .addColumn("route", types.text, (column) => column.notNull())
    .addColumn("reason", types.text, (column) => column.notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("process_id", types.text, (column) => column.notNull())
    .addColumn("count", types.integer, (column) => column.notNull())
    .addPrimaryKeyConstraint("visits_pkey", [
      "day",
      "route",
      "reason",
      "network",
      "asset",
      "process_id",
    ])
    .execute();
  // Those that retention sums into one row for all processes.
  await sql`create index visits_unsummed on visits (day) where process_id <> ''`.execute(
    transaction,
  );
}
