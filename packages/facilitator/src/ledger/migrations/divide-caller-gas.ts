import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";

/** Gas that buyers cause, apart: it must leave a caller enough for its claims. */
export async function divideCallerGas<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await schema
    .alterTable("caller_gas")
    .addColumn("by_buyer", types.integer, (column) => column.notNull().defaultTo(sql.lit(0)))
    .execute();
}
