import { sql } from "kysely";
import type { Migration } from "../migrate.ts";

/** Creates the tables of an outbox: part of the migrations of a package that has one. */
export const outboxMigration = createOutboxMigration("outbox");

/** As `outboxMigration`, for an outbox whose `tables` have another name. */
export function createOutboxMigration(tables: string): Migration {
  return {
    title: "outbox",
    async up(transaction, { engine, types, autoIncrement }) {
      const { schema } = transaction;
      await schema
        .createTable(`${tables}_endpoints`)
        .addColumn("id", types.text, (column) => column.primaryKey().notNull())
        .addColumn("url", types.text, (column) => column.notNull())
        .addColumn("secrets", types.text, (column) => column.notNull())
        .addColumn("is_enabled", types.integer, (column) => column.notNull())
        .addColumn("created_at", types.timestampMs, (column) => column.notNull())
        .execute();
      await schema
        .createTable(`${tables}_subscriptions`)
        .addColumn("type", types.text, (column) => column.notNull())
        .addColumn("endpoint_id", types.text, (column) => column.notNull())
        .addPrimaryKeyConstraint(`${tables}_subscriptions_key`, ["type", "endpoint_id"])
        .execute();
      await schema
        .createTable(`${tables}_events`)
        .addColumn("seq", types.integer, autoIncrement)
        .addColumn("id", types.text, (column) => column.notNull())
        .addColumn("key", types.text, (column) => column.notNull())
        .addColumn("type", types.text, (column) => column.notNull())
        .addColumn("payload", types.text, (column) => column.notNull())
        .addColumn("created_at", types.timestampMs, (column) => column.notNull())
        .execute();
      await schema
        .createIndex(`${tables}_events_time`)
        .on(`${tables}_events`)
        .columns(["created_at", "seq"])
        .execute();
      const deliveries = schema
        .createTable(`${tables}_deliveries`)
        .addColumn("event_seq", types.integer, (column) => column.notNull())
        .addColumn("endpoint_id", types.text, (column) => column.notNull())
        .addColumn("key", types.text, (column) => column.notNull())
        .addColumn("state", types.text, (column) => column.notNull())
        .addColumn("attempts", types.integer, (column) => column.notNull())
        .addColumn("next_at", types.timestampMs, (column) => column.notNull())
        .addColumn("claim", types.text)
        .addColumn("error", types.text)
        .addColumn("ended_at", types.timestampMs)
        .addPrimaryKeyConstraint(`${tables}_deliveries_key`, ["event_seq", "endpoint_id"]);
      // Without rowids, an insert of deliveries leaves the number of the event before it as the
      // last.
      const withoutRowid = sql`without rowid`;
      await (engine === "sqlite" ? deliveries.modifyEnd(withoutRowid) : deliveries).execute();
      for (const statement of indexesOf(tables)) await sql.raw(statement).execute(transaction);
      if (engine === "sqlite") return;
      // Each delivery leaves two dead rows in the index that every claim reads.
      await sql`
      alter table ${sql.table(`${tables}_deliveries`)}
      set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)
    `.execute(transaction);
    },
  };
}

function indexesOf(tables: string): string[] {
  return [
    `create index ${tables}_due on ${tables}_deliveries (endpoint_id, next_at, event_seq) where state = 'pending'`,
    `create index ${tables}_keys on ${tables}_deliveries (endpoint_id, key, event_seq) where state = 'pending'`,
    `create index ${tables}_ended on ${tables}_deliveries (state, ended_at, event_seq) where ended_at is not null`,
  ];
}
