import type { Migration } from "@coinslot/storage";
import { clustered } from "./clustered.ts";

/**
 * New tables alone: a process of the release before does not know them, and goes on beside this
 * one.
 */
export const addVerification: Migration = {
  title: "second readings, marks and requests",
  async up(transaction, dialect) {
    const { types } = dialect;
    const { schema } = transaction;

    await clustered(dialect, schema.createTable("indexer_verified_ranges"))
      .addColumn("token_id", types.integer, (column) => column.notNull())
      .addColumn("from_block", types.integer, (column) => column.notNull())
      .addColumn("next_block", types.integer, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_verified_ranges_key", ["token_id", "from_block"])
      .execute();

    await schema
      .createTable("indexer_checks")
      .addColumn("chain_id", types.integer, (column) => column.primaryKey())
      .addColumn("proofs", types.text)
      .addColumn("problem", types.text)
      .addColumn("repaired_blocks", types.integer, (column) => column.notNull().defaultTo(0))
      .addColumn("repaired_at_ms", types.timestampMs)
      .addColumn("doubted_from", types.integer)
      .addColumn("doubted_since_ms", types.timestampMs)
      .execute();

    await clustered(dialect, schema.createTable("indexer_marks"))
      .addColumn("chain_id", types.integer, (column) => column.notNull())
      .addColumn("number", types.integer, (column) => column.notNull())
      .addColumn("hash", types.bytes, (column) => column.notNull())
      .addPrimaryKeyConstraint("indexer_marks_key", ["chain_id", "number"])
      .execute();

    await schema
      .createTable("indexer_requests")
      .addColumn("id", types.integer, dialect.autoIncrement)
      .addColumn("chain_id", types.integer, (column) => column.notNull())
      .addColumn("kind", types.text, (column) => column.notNull())
      .addColumn("token_id", types.integer)
      .addColumn("from_block", types.integer, (column) => column.notNull())
      .addColumn("next_block", types.integer)
      .addColumn("requested_at_ms", types.timestampMs, (column) => column.notNull())
      .addColumn("done_at_ms", types.timestampMs)
      .execute();
    await schema
      .createIndex("indexer_requests_chain")
      .on("indexer_requests")
      .columns(["chain_id", "done_at_ms", "id"])
      .execute();
  },
};
