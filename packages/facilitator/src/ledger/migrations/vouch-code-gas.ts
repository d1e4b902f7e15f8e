import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/**
 * Marks gas that a payer's record vouches for. Gas spent before this step was spent without a
 * record.
 */
export async function vouchCodeGas<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await transaction.schema
    .alterTable("code_gas")
    .addColumn("is_vouched", types.integer, (column) => column.notNull().defaultTo(0))
    .execute();
}
