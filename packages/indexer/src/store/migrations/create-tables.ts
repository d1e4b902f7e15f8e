import type { Dialect, Migration } from "@coinslot/storage";
import { type CreateTableBuilder, sql } from "kysely";
import { clustered } from "./clustered.ts";

/** The first tables of `IndexerSchema`. */
export const createTables: Migration = {
  title: "transfers and balances",
  async up(transaction, dialect) {
    const { types } = dialect;
    const { schema } = transaction;

    await schema
      .createTable("indexer_chains")
      .addColumn("chain_id", types.integer, (column) => column.primaryKey())
      .addColumn("name", types.text, (column) => column.notNull())
      .addColumn("state", types.text, (column) => column.notNull())
      .addColumn("problem", types.text)
      .addColumn("head_number", types.integer)
      .addColumn("head_timestamp_ms", types.timestampMs)
      .addColumn("finalized_number", types.integer)
      .addColumn("seen_at_ms", types.timestampMs, (column) => column.notNull())
      .addColumn("progress_at_ms", types.timestampMs, (column) => column.notNull())
      .addColumn("announced_from", types.integer)
      .execute();

    await schema
      .createTable("indexer_tokens")
      .addColumn("id", types.integer, dialect.autoIncrement)
      .addColumn("chain_id", types.integer, (column) => column.notNull())
      .addColumn("address", types.bytes, (column) => column.notNull())
      .addColumn("name", types.text, (column) => column.notNull())
      .addColumn("opens_at_zero", types.integer, (column) => column.notNull())
      .addColumn("revision", types.integer, (column) => column.notNull())
      .addUniqueConstraint("indexer_tokens_address", ["chain_id", "address"])
      .execute();

    await clustered(dialect, schema.createTable("indexer_ranges"))
      .addColumn("token_id", types.integer, (column) => column.notNull())
      .addColumn("from_block", types.integer, (column) => column.notNull())
      .addColumn("next_block", types.integer, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_ranges_key", ["token_id", "from_block"])
      .execute();

    await clustered(dialect, transferColumns(dialect, schema.createTable("indexer_transfers")))
      .addPrimaryKeyConstraint("indexer_transfers_key", ["token_id", "position"])
      .execute();
    for (const side of ["from", "to"]) {
      await schema
        .createIndex(`indexer_transfers_${side}`)
        .on("indexer_transfers")
        .columns(["token_id", `${side}_address`, "position"])
        .execute();
    }
    // Eight bytes distinguish transactions as well as 32, and make the index half as large.
    await sql`
        create index indexer_transfers_transaction on indexer_transfers (substr(transaction_hash, 1, 8))
      `.execute(transaction);

    await clustered(dialect, schema.createTable("indexer_blocks"))
      .addColumn("chain_id", types.integer, (column) => column.notNull())
      .addColumn("number", types.integer, (column) => column.notNull())
      .addColumn("hash", types.bytes, (column) => column.notNull())
      .addColumn("timestamp_ms", types.timestampMs, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_blocks_key", ["chain_id", "number"])
      .execute();
    await schema
      .createIndex("indexer_blocks_timestamp")
      .on("indexer_blocks")
      .columns(["chain_id", "timestamp_ms", "number"])
      .execute();

    await clustered(dialect, schema.createTable("indexer_window"))
      .addColumn("chain_id", types.integer, (column) => column.notNull())
      .addColumn("number", types.integer, (column) => column.notNull())
      .addColumn("hash", types.bytes, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_window_key", ["chain_id", "number"])
      .execute();

    for (const table of ["indexer_balances", "indexer_openings"]) {
      await clustered(dialect, schema.createTable(table))
        .addColumn("token_id", types.integer, (column) => column.notNull())
        .addColumn("address", types.bytes, (column) => column.notNull())
        .addColumn("amount", types.amount, (column) => column.notNull())
        .addPrimaryKeyConstraint(`${table}_key`, ["token_id", "address"])
        .execute();
    }

    await transferColumns(dialect, schema.createTable("indexer_events"))
      .addColumn("id", types.integer, dialect.autoIncrement)
      .addColumn("kind", types.text, (column) => column.notNull())
      .addColumn("block_hash", types.bytes, (column) => column.notNull())
      .addColumn("timestamp_ms", types.timestampMs, (column) => column.notNull())
      .execute();
  },
};

function transferColumns<Table extends string, Columns extends string>(
  { types }: Dialect,
  table: CreateTableBuilder<Table, Columns>,
) {
  return table
    .addColumn("token_id", types.integer, (column) => column.notNull())
    .addColumn("position", types.integer, (column) => column.notNull())
    .addColumn("transaction_index", types.integer, (column) => column.notNull())
    .addColumn("transfer_index", types.integer, (column) => column.notNull())
    .addColumn("transaction_hash", types.bytes, (column) => column.notNull())
    .addColumn("from_address", types.bytes, (column) => column.notNull())
    .addColumn("to_address", types.bytes, (column) => column.notNull())
    .addColumn("amount", types.amount, (column) => column.notNull());
}
