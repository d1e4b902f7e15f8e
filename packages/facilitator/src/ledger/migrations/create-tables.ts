import type { Dialect } from "@coinslot/storage";
import { type SchemaModule, type SqlBool, sql, type Transaction } from "kysely";

/** Written out, for a migration stays as it was when the states of the program change. */
const states = "'reserved', 'queued', 'submitted', 'confirmed', 'failed', 'expired', 'released'";

/** The first migration of the ledger: every table and index of `LedgerSchema`. */
export async function createTables<Schema>(
  { schema }: Transaction<Schema>,
  { types }: Dialect,
): Promise<void> {
  await createPayments(schema, types);
  await createOrders(schema, types);
  await createTransactions(schema, types);
  await createBroadcasts(schema, types);
  await createAnswers(schema, types);
  await createPayers(schema, types);
  await createProcesses(schema, types);
}

async function createPayments(schema: SchemaModule, types: Dialect["types"]): Promise<void> {
  await schema
    .createTable("payments")
    .addColumn("id", types.text, (column) => column.primaryKey())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("asset", types.text, (column) => column.notNull())
    .addColumn("payer", types.text, (column) => column.notNull())
    .addColumn("nonce", types.text, (column) => column.notNull())
    .addColumn("value", types.amount, (column) => column.notNull())
    .addColumn("valid_before", types.amount, (column) => column.notNull())
    .addColumn("state", types.text, (column) =>
      column.notNull().check(sql`state in (${sql.raw(states)})`),
    )
    .addColumn("fingerprint", types.text, (column) => column.notNull())
    .addColumn("key_hash", types.text)
    .addColumn("token", types.text)
    .addColumn("owner", types.text)
    .addColumn("unused_at_block", types.integer)
    .addColumn("transaction_id", types.text)
    .addColumn("carried", types.integer, (column) => column.notNull())
    .addColumn("is_alone", types.integer, (column) => column.notNull())
    .addColumn("block_number", types.integer)
    .addColumn("block_hash", types.text)
    .addColumn("transaction_hash", types.text)
    .addColumn("reason", types.text)
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addColumn("queued_at", types.timestampMs)
    .addColumn("submitted_at", types.timestampMs)
    .addColumn("confirmed_at", types.timestampMs)
    .addColumn("final_at", types.timestampMs)
    .addColumn("delivered_at", types.timestampMs)
    .addColumn("closed_at", types.timestampMs)
    .execute();
  // The nonce is random, so it comes first: an index of long equal beginnings is slow.
  await schema
    .createIndex("payments_identity")
    .on("payments")
    .columns(["nonce", "payer", "asset", "network"])
    .unique()
    .execute();
  await schema
    .createIndex("payments_token")
    .on("payments")
    .column("token")
    .unique()
    .where(sql<SqlBool>`token is not null`)
    .execute();
  // SQLite uses such an index only for statements that show the very same condition. The index is
  // in the order of creation, and not of the ids. The primary key has all ids that ever were.
  await schema
    .createIndex("payments_reserved")
    .on("payments")
    .column("owner")
    .where(sql<SqlBool>`state = 'reserved'`)
    .execute();
  await schema
    .createIndex("payments_queued")
    .on("payments")
    .columns(["network", "created_at"])
    .where(sql<SqlBool>`state = 'queued'`)
    .execute();
  await schema
    .createIndex("payments_submitted")
    .on("payments")
    .columns(["network", "created_at"])
    .where(sql<SqlBool>`state = 'submitted'`)
    .execute();
  await schema
    .createIndex("payments_unsettled")
    .on("payments")
    .columns(["network", "created_at", "id"])
    .where(sql<SqlBool>`state = 'failed' and closed_at is null`)
    .execute();
  await schema
    .createIndex("payments_not_final")
    .on("payments")
    .columns(["network", "block_number"])
    .where(sql<SqlBool>`state = 'confirmed' and final_at is null`)
    .execute();
  await schema
    .createIndex("payments_payer")
    .on("payments")
    .columns(["payer", "state", "block_number"])
    .execute();
  await schema
    .createIndex("payments_key")
    .on("payments")
    .columns(["key_hash", "payer"])
    .where(sql<SqlBool>`key_hash is not null`)
    .execute();
  await schema
    .createIndex("payments_transaction")
    .on("payments")
    .column("transaction_id")
    .where(sql<SqlBool>`transaction_id is not null`)
    .execute();
}

async function createOrders(schema: SchemaModule, types: Dialect["types"]): Promise<void> {
  await schema
    .createTable("orders")
    .addColumn("payment_id", types.text, (column) => column.primaryKey())
    .addColumn("pay_to", types.text, (column) => column.notNull())
    .addColumn("valid_after", types.amount, (column) => column.notNull())
    .addColumn("signature", types.text, (column) => column.notNull())
    .execute();
}

async function createTransactions(schema: SchemaModule, types: Dialect["types"]): Promise<void> {
  await schema
    .createTable("transactions")
    .addColumn("id", types.text, (column) => column.primaryKey())
    .addColumn("network", types.text, (column) => column.notNull())
    .addColumn("relayer", types.text, (column) => column.notNull())
    .addColumn("nonce", types.integer, (column) => column.notNull())
    .addColumn("state", types.text, (column) => column.notNull())
    .addColumn("epoch", types.integer, (column) => column.notNull())
    .addColumn("gas_limit", types.integer, (column) => column.notNull())
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .addColumn("hash", types.text)
    .addColumn("block_number", types.integer)
    .addColumn("block_hash", types.text)
    .addColumn("gas_used", types.integer)
    .execute();
  await schema
    .createIndex("transactions_nonce")
    .on("transactions")
    .columns(["network", "relayer", "nonce"])
    .unique()
    .execute();
  await schema
    .createIndex("transactions_open")
    .on("transactions")
    .columns(["network", "relayer", "nonce"])
    .where(sql<SqlBool>`state = 'open'`)
    .execute();
  await schema
    .createIndex("transactions_settled")
    .on("transactions")
    .columns(["network", "block_number"])
    .where(sql<SqlBool>`state = 'settled'`)
    .execute();
}

async function createBroadcasts(schema: SchemaModule, types: Dialect["types"]): Promise<void> {
  await schema
    .createTable("broadcasts")
    .addColumn("hash", types.text, (column) => column.primaryKey())
    .addColumn("transaction_id", types.text, (column) => column.notNull())
    .addColumn("raw", types.text, (column) => column.notNull())
    .addColumn("content", types.text, (column) => column.notNull())
    .addColumn("max_fee_per_gas", types.amount, (column) => column.notNull())
    .addColumn("max_priority_fee_per_gas", types.amount)
    .addColumn("created_at", types.timestampMs, (column) => column.notNull())
    .execute();
  await schema
    .createIndex("broadcasts_transaction")
    .on("broadcasts")
    .column("transaction_id")
    .execute();
}

async function createAnswers(schema: SchemaModule, types: Dialect["types"]): Promise<void> {
  await schema
    .createTable("answers")
    .addColumn("payer", types.text, (column) => column.notNull())
    .addColumn("key_hash", types.text, (column) => column.notNull())
    .addColumn("payment_id", types.text, (column) => column.notNull())
    .addColumn("sealed", types.bytes, (column) => column.notNull())
    .addColumn("expires_at", types.timestampMs, (column) => column.notNull())
    .addPrimaryKeyConstraint("answers_key", ["key_hash", "payer"])
    .execute();
  await schema.createIndex("answers_payment").on("answers").column("payment_id").execute();
  await schema.createIndex("answers_expiry").on("answers").column("expires_at").execute();
}

async function createPayers(schema: SchemaModule, types: Dialect["types"]): Promise<void> {
  await schema
    .createTable("payers")
    .addColumn("payer", types.text, (column) => column.primaryKey())
    .addColumn("releases", types.integer, (column) => column.notNull())
    .addColumn("window_started_at", types.timestampMs, (column) => column.notNull())
    .execute();
}

async function createProcesses(schema: SchemaModule, types: Dialect["types"]): Promise<void> {
  await schema
    .createTable("processes")
    .addColumn("id", types.text, (column) => column.primaryKey())
    .addColumn("heartbeat_at", types.timestampMs, (column) => column.notNull())
    .execute();
}
