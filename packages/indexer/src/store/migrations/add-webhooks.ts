import { createOutboxMigration, type Migration } from "@coinslot/storage";
import { sql } from "kysely";
import { clustered } from "./clustered.ts";

/** A ledger in the same database has an outbox of its own. */
export const outboxTables = "indexer_outbox";

export const addOutbox: Migration = {
  ...createOutboxMigration(outboxTables),
  title: "outbox of the indexer",
};

/** New tables alone: the release before does not know them. */
export const addWatchedAddresses: Migration = {
  title: "watched addresses, and the transfers that were told",
  async up(transaction, dialect) {
    const { types } = dialect;
    const { schema } = transaction;

    await clustered(dialect, schema.createTable("indexer_watched"))
      .addColumn("address", types.bytes, (column) => column.notNull())
      .addColumn("endpoint_id", types.text, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_watched_key", ["address", "endpoint_id"])
      .execute();
    await schema
      .createIndex("indexer_watched_endpoint")
      .on("indexer_watched")
      .columns(["endpoint_id", "address"])
      .execute();

    await clustered(dialect, schema.createTable("indexer_told"))
      .addColumn("token_id", types.integer, (column) => column.notNull())
      .addColumn("position", types.integer, (column) => column.notNull())
      .addColumn("endpoint_id", types.text, (column) => column.notNull())
      .addColumn("chain_id", types.integer, (column) => column.notNull())
      .addColumn("block_number", types.integer, (column) => column.notNull())
      .addColumn("block_hash", types.bytes, (column) => column.notNull())
      .addColumn("transaction_hash", types.bytes, (column) => column.notNull())
      .addColumn("key", types.text, (column) => column.notNull())
      .addColumn("payload", types.text, (column) => column.notNull())
      .addColumn("final_at_ms", types.timestampMs)
      .addPrimaryKeyConstraint("indexer_told_key", ["token_id", "position", "endpoint_id"])
      .execute();
    for (const statement of [
      "create index indexer_told_open on indexer_told (chain_id, block_number) where final_at_ms is null",
      "create index indexer_told_final on indexer_told (final_at_ms) where final_at_ms is not null",
    ])
      await sql.raw(statement).execute(transaction);

    await schema
      .createTable("indexer_telling")
      .addColumn("id", types.integer, (column) => column.primaryKey())
      .addColumn("last_event", types.integer, (column) => column.notNull())
      .execute();
    await sql`insert into indexer_telling (id, last_event) values (1, 0)`.execute(transaction);
  },
};

/** The release before does not know this column, and announces all transfers to receivers. */
export const addToldFrom: Migration = {
  title: "the first block of which receivers hear",
  async up(transaction, { types }) {
    await transaction.schema
      .alterTable("indexer_chains")
      .addColumn("told_from", types.integer)
      .execute();
    await sql`update indexer_chains set told_from = announced_from`.execute(transaction);
  },
};

/** A new table alone: the release before does not know it. */
export const addReverted: Migration = {
  title: "transfers that were reverted",
  async up(transaction, dialect) {
    const { types } = dialect;
    const { schema } = transaction;
    await clustered(dialect, schema.createTable("indexer_reverted"))
      .addColumn("token_id", types.integer, (column) => column.notNull())
      .addColumn("transaction_hash", types.bytes, (column) => column.notNull())
      .addColumn("endpoint_id", types.text, (column) => column.notNull())
      .addColumn("address", types.text, (column) => column.notNull())
      .addColumn("reverted_at_ms", types.timestampMs, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_reverted_key", [
        "token_id",
        "transaction_hash",
        "endpoint_id",
        "address",
      ])
      .execute();
    await schema
      .createIndex("indexer_reverted_time")
      .on("indexer_reverted")
      .column("reverted_at_ms")
      .execute();
  },
};

/** A new table alone: the release before does not know it. */
export const addUnsent: Migration = {
  title: "transfers that a receiver was not sent",
  async up(transaction, dialect) {
    const { types } = dialect;
    const { schema } = transaction;
    await clustered(dialect, schema.createTable("indexer_unsent"))
      .addColumn("token_id", types.integer, (column) => column.notNull())
      .addColumn("transaction_hash", types.bytes, (column) => column.notNull())
      .addColumn("endpoint_id", types.text, (column) => column.notNull())
      .addColumn("address", types.text, (column) => column.notNull())
      .addColumn("reverted_at_ms", types.timestampMs, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_unsent_key", [
        "token_id",
        "transaction_hash",
        "endpoint_id",
        "address",
      ])
      .execute();
    await schema
      .createIndex("indexer_unsent_time")
      .on("indexer_unsent")
      .column("reverted_at_ms")
      .execute();
  },
};
