import { sql } from "kysely";
import type { Database } from "../database.ts";
import type { Migration } from "../migrate.ts";
import type { HitCounter } from "./hit-counter.ts";

const sweepEveryMs = 60_000;

/**
 * Creates a table for counted requests in PostgreSQL. Counts are worthless after a crash, so the
 * table is unlogged. SQLite has one process, which counts in its memory.
 */
export function hitsMigration(table: string): Migration {
  return {
    title: "counted requests",
    async up(tx, { engine }) {
      if (engine === "sqlite") return;
      await sql`
        create unlogged table ${sql.table(table)} (
          name text primary key,
          count bigint not null,
          resets_at_ms bigint not null
        )
      `.execute(tx);
    },
  };
}

/**
 * Counts for all processes that share the database, on its clock. Needs the table's
 * `hitsMigration`.
 */
export function createDatabaseHitCounter<Schema>(options: {
  database: Database<Schema>;
  table: string;
  /** Receives the error of a failed removal of ended windows. */
  onBackgroundError: (error: unknown) => void;
  now: () => number;
}): HitCounter {
  const { database, onBackgroundError, now } = options;
  const table = sql.table(options.table);
  const { kysely, dialect } = database;
  let sweepAt = now() + sweepEveryMs;

  function sweep(): void {
    if (now() < sweepAt) return;
    sweepAt = now() + sweepEveryMs;
    sql`delete from ${table} where resets_at_ms <= ${dialect.nowMs()}`
      .execute(kysely)
      .catch(onBackgroundError);
  }

  return {
    async hit(name, windowMs) {
      sweep();
      // Two processes may hit at once: the second waits for the row, and continues from the first
      // one's count.
      // A window that lasts longer than a whole one began before the database's clock was put back.
      const isOver = sql<boolean>`(
        held.resets_at_ms <= ${dialect.nowMs()}
        or held.resets_at_ms > ${dialect.nowMs()} + ${windowMs}
      )`;
      const { rows } = await sql<{ count: number; resets_in_ms: number }>`
        insert into ${table} as held (name, count, resets_at_ms)
        values (${name}, 1, ${dialect.nowMs()} + ${windowMs})
        on conflict (name) do update set
          count = case when ${isOver} then 1 else held.count + 1 end,
          resets_at_ms = case when ${isOver}
            then excluded.resets_at_ms else held.resets_at_ms end
        returning count, resets_at_ms - ${dialect.nowMs()} as resets_in_ms
      `.execute(kysely);
      const [row] = rows;
      if (row === undefined) throw new Error("Counting a request returned no row.");
      return { count: row.count, resetsInMs: Math.max(row.resets_in_ms, 0) };
    },
  };
}
