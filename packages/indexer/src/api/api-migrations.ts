import { hitsMigration, type MigrateOptions } from "@coinslot/storage";

/** Table of request counters. */
export const hitsTable = "indexer_api_hits";

/** The tables of the API, in the same database as the transfers. */
export const apiMigrations: MigrateOptions = {
  name: "indexer-api",
  migrations: [
    {
      title: "keys",
      async up(tx, { types }) {
        await tx.schema
          .createTable("indexer_api_keys")
          .addColumn("id", types.text, (column) => column.primaryKey())
          .addColumn("salt", types.text, (column) => column.notNull())
          .addColumn("hash", types.text, (column) => column.notNull().unique())
          .addColumn("owner", types.text, (column) => column.notNull())
          .addColumn("label", types.text)
          .addColumn("ttl_ms", types.integer, (column) => column.notNull())
          .addColumn("created_at_ms", types.timestampMs, (column) => column.notNull())
          .addColumn("last_active_at_ms", types.timestampMs, (column) => column.notNull())
          .addColumn("limit_max", types.integer)
          .addColumn("limit_window_ms", types.integer)
          .execute();
        await tx.schema
          .createIndex("indexer_api_keys_owner")
          .on("indexer_api_keys")
          .column("owner")
          .execute();
      },
    },
    hitsMigration(hitsTable),
  ],
};
