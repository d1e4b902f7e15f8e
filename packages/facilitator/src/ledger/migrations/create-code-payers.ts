import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";

/** Payers with code: those that have burnt gas, and the gas budget that the others share. */
export async function createCodePayers<Schema>(
  transaction: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  await schema
    .createTable("code_payers")
    .addColumn("payer", types.text, (column) => column.primaryKey())
    .addColumn("refused_until", types.timestampMs, (column) => column.notNull())
    .addColumn("gas_burnt", types.integer, (column) => column.notNull())
    .execute();
  await schema
    .createTable("code_budgets")
    .addColumn("network", types.text, (column) => column.primaryKey())
    .execute();
  await schema
    .createTable("code_gas")
    .addColumn("payment_id", types.text, (column) => column.primaryKey())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("gas", types.integer, (column) => column.notNull())
    .addColumn("spent_at", types.timestampMs, (column) => column.notNull())
    .execute();
  await schema
    .createIndex("code_gas_network")
    .on("code_gas")
    .columns(["network", "spent_at"])
    .execute();
}
