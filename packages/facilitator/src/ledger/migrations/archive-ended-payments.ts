import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";

/** Tables whose rows come and go. */
const changing = ["payments", "orders", "transactions", "broadcasts"];

/**
 * The compact form of ended payments, the last use of a sold name, and the schema that a process
 * knows.
 *
 * The previous release goes on beside this step. It looks for no payment here, as if retention had
 * deleted it, and writes neither new column.
 */
export async function archiveEndedPayments<Schema>(
  transaction: Transaction<Schema>,
  { engine, types }: Dialect,
): Promise<void> {
  const { schema } = transaction;
  const table = schema
    .createTable("archived_payments")
    .addColumn("id", types.text, (column) => column.primaryKey().notNull())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.bytes, (column) => column.notNull())
    .addColumn("authority", types.bytes)
    .addColumn("payer", types.bytes, (column) => column.notNull())
    .addColumn("nonce", types.bytes, (column) => column.notNull())
    .addColumn("value", types.amount, (column) => column.notNull())
    .addColumn("valid_before", types.amount, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("scheme", types.text, (column) => column.notNull())
    .addColumn("carried", types.integer, (column) => column.notNull())
    .addColumn("runs", types.integer, (column) => column.notNull())
    .addColumn("block_number", types.integer)
    .addColumn("block_hash", types.bytes)
    .addColumn("transaction_hash", types.bytes)
    .addColumn("reason", types.text)
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addColumn("queued_at", types.timestampMs)
    .addColumn("submitted_at", types.timestampMs)
    .addColumn("confirmed_at", types.timestampMs)
    .addColumn("final_at", types.timestampMs)
    .addColumn("delivered_at", types.timestampMs)
    .addColumn("closed_at", types.timestampMs)
    .addColumn("wire", types.text)
    .addColumn("route_id", types.integer)
    .addColumn("resource_id", types.integer)
    .addColumn("pay_to_id", types.integer)
    .addColumn("gas_share", types.integer);
  // SQLite keeps such rows in the order of their key, which saves an index.
  await (engine === "sqlite" ? table.modifyEnd(sql`without rowid`) : table).execute();
  await schema
    .createIndex("archived_payments_payer")
    .on("archived_payments")
    .columns(["payer", "id"])
    .execute();
  await schema
    .createIndex("archived_payments_unpaid")
    .on("archived_payments")
    .columns(["state", "id"])
    .where(sql<SqlBool>`state in ('failed', 'expired', 'released')`)
    .execute();
  await schema.alterTable("sold_names").addColumn("used_at", types.timestampMs).execute();
  await schema.alterTable("processes").addColumn("schema_version", types.integer).execute();
  if (engine === "sqlite") return;
  for (const name of changing) {
    // By default a fifth of a large table may be dead rows before their space is used again.
    await sql`
      alter table ${sql.table(name)}
      set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)
    `.execute(transaction);
  }
}
