import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** Creates the tables of an outbox: part of the migrations of a package that has one. */
export const outboxMigration: Migration = {
  title: "outbox",
  async up(transaction, { engine, types, autoIncrement }) {
    const { schema } = transaction;
    await schema
      .createTable("outbox_endpoints")
      .addColumn("id", types.text, (column) => column.primaryKey().notNull())
      .addColumn("url", types.text, (column) => column.notNull())
      .addColumn("secrets", types.text, (column) => column.notNull())
      .addColumn("is_enabled", types.integer, (column) => column.notNull())
      .addColumn("created_at", types.timestampMs, (column) => column.notNull())
      .execute();
    await schema
      .createTable("outbox_subscriptions")
      .addColumn("type", types.text, (column) => column.notNull())
      .addColumn("endpoint_id", types.text, (column) => column.notNull())
      .addPrimaryKeyConstraint("outbox_subscriptions_key", ["type", "endpoint_id"])
      .execute();
    await schema
      .createTable("outbox_events")
      .addColumn("seq", types.integer, autoIncrement)
      .addColumn("id", types.text, (column) => column.notNull())
      .addColumn("key", types.text, (column) => column.notNull())
      .addColumn("type", types.text, (column) => column.notNull())
      .addColumn("payload", types.text, (column) => column.notNull())
      .addColumn("created_at", types.timestampMs, (column) => column.notNull())
      .execute();
    await schema
      .createIndex("outbox_events_time")
      .on("outbox_events")
      .columns(["created_at", "seq"])
      .execute();
    const deliveries = schema
      .createTable("outbox_deliveries")
      .addColumn("event_seq", types.integer, (column) => column.notNull())
      .addColumn("endpoint_id", types.text, (column) => column.notNull())
      .addColumn("key", types.text, (column) => column.notNull())
      .addColumn("state", types.text, (column) => column.notNull())
      .addColumn("attempts", types.integer, (column) => column.notNull())
      .addColumn("next_at", types.timestampMs, (column) => column.notNull())
      .addColumn("claim", types.text)
      .addColumn("error", types.text)
      .addColumn("ended_at", types.timestampMs)
      .addPrimaryKeyConstraint("outbox_deliveries_key", ["event_seq", "endpoint_id"]);
    // Without rowids, an insert of deliveries leaves the number of the event before it as the last.
    const withoutRowid = sql`without rowid`;
    await (engine === "sqlite" ? deliveries.modifyEnd(withoutRowid) : deliveries).execute();
    for (const statement of indexes) await sql.raw(statement).execute(transaction);
    if (engine === "sqlite") return;
    // Each delivery leaves two dead rows in the index that every claim reads.
    await sql`
      alter table outbox_deliveries
      set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)
    `.execute(transaction);
  },
};

const indexes = [
  "create index outbox_due on outbox_deliveries (endpoint_id, next_at, event_seq) where state = 'pending'",
  "create index outbox_keys on outbox_deliveries (endpoint_id, key, event_seq) where state = 'pending'",
  "create index outbox_ended on outbox_deliveries (state, ended_at, event_seq) where ended_at is not null",
];
