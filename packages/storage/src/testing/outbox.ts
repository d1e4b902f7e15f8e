import { sql } from "kysely";
import type { Database } from "../database.ts";
import { type Migration, migrate } from "../migrate.ts";
import { eventStatements, isWanted } from "../outbox/event-statements.ts";
import type { OutboxContext } from "../outbox/outbox-context.ts";
import { outboxMigration } from "../outbox/outbox-migration.ts";
import { createWriter } from "../writer.ts";
import { openForTest } from "./engines.ts";

/** A table whose changes of state are told, and a clock that the test moves. */
const things: Migration = {
  title: "things",
  async up(tx, dialect) {
    const { types, engine } = dialect;
    await tx.schema
      .createTable("things")
      .addColumn("id", types.text, (column) => column.primaryKey())
      .addColumn("state", types.text, (column) => column.notNull())
      .execute();
    await tx.schema.createTable("clock").addColumn("now_ms", types.integer).execute();
    await sql`insert into clock (now_ms) values (1000000000)`.execute(tx);
    const payload =
      engine === "sqlite"
        ? "json_object('state', new.state)"
        : "json_build_object('state', new.state)::text";
    const source = { type: "thing.changed", key: "new.id", payload };
    const statements = eventStatements(dialect, source);
    for (const statement of engine === "sqlite"
      ? [
          `create trigger things_told after update of state on things when ${isWanted(source.type)} begin ${statements} end`,
        ]
      : [
          `create function things_told() returns trigger language plpgsql as $body$ begin if ${isWanted(source.type)} then ${statements} end if; return null; end $body$`,
          "create trigger things_told after update of state on things for each row execute function things_told()",
        ]) {
      await sql.raw(statement).execute(tx);
    }
  },
};

interface Schema {
  things: { id: string; state: string };
}

/** An outbox with its owner, on a clock in a table. */
export interface TestOutbox extends OutboxContext<Schema> {
  database: Database<Schema>;
  /** Changes a thing, which writes an event. */
  change(id: string, state: string): Promise<void>;
  advance(byMs: number): Promise<void>;
  count(table: string): Promise<number>;
}

export async function openTestOutbox(url: string): Promise<TestOutbox> {
  const database = await openForTest<Schema>({ url });
  await migrate(database, { name: "test", migrations: [outboxMigration, things] });
  const { kysely: db, dialect } = database;
  return {
    database,
    db,
    dialect,
    write: createWriter(database).write,
    nowMs: sql<number>`(select now_ms from clock)`,
    async change(id, state) {
      await database.transaction(async (tx) => {
        await sql`
          insert into things (id, state) values (${id}, 'new') on conflict do nothing
        `.execute(tx);
        await sql`update things set state = ${state} where id = ${id}`.execute(tx);
      });
    },
    async advance(byMs) {
      await sql`update clock set now_ms = now_ms + ${byMs}`.execute(db);
    },
    async count(table) {
      const { rows } = await sql<{ rows: number }>`
        select count(*) as rows from ${sql.table(table)}
      `.execute(db);
      return rows[0]?.rows ?? 0;
    },
  };
}
