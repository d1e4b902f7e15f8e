import { setTimeout as sleep } from "node:timers/promises";
import { sql, type Transaction } from "kysely";
import { holdBuilds } from "./build-index.ts";
import type { Database } from "./database.ts";
import { DatabaseError } from "./database-error.ts";
import type { Dialect } from "./dialect.ts";

/** One step of a schema. Once released it never changes, and keeps its place in the list. */
export interface Migration {
  /** Unique description of the step. */
  title: string;
  up<Schema>(transaction: Transaction<Schema>, dialect: Dialect): Promise<void>;
}

/** Pause between two looks whether an index is still being built. */
const buildPollMs = 500;

export interface MigrateOptions {
  /** Owner of the tables; several packages may share one database. */
  name: string;
  /** In the order of application. */
  migrations: readonly Migration[];
}

/**
 * Migrates the tables of `name` to the last of `migrations`, each in its own transaction, and
 * records which ran. Any number of processes may start at once: one of them does the work, the
 * others wait for it. It also waits while an index is built beside the traffic: minutes, on a large
 * table.
 *
 * Rejects with a `DatabaseError`. Its kind is `newer-schema` if the database has more migrations
 * than this program, and `foreign-schema` if it has others. A database opened with `readOnly`
 * passes if no migration is pending.
 *
 * @param pause waits between two looks whether an index is still being built. Default a timer
 */
export async function migrate<Schema>(
  { transaction, dialect }: Database<Schema>,
  { name, migrations }: MigrateOptions,
  pause: (ms: number) => Promise<void> = sleep,
): Promise<void> {
  for (;;) {
    const step = await transaction(async (tx): Promise<"done" | "applied" | "must_wait"> => {
      await dialect.liftTimeouts(tx);
      // Held until the commit: a process that waits here then reads the migrations of the one
      // before.
      await dialect.lockKey(tx, "coinslot:migrate");
      const applied = await readApplied(tx, { name, dialect });
      refuseOthers(applied, { name, migrations });
      const next = migrations[applied.length];
      if (next === undefined) return "done";
      if (!(await holdBuilds(tx, dialect))) return "must_wait";
      await next.up(tx, dialect);
      await remember(tx, { name, version: applied.length + 1, title: next.title, dialect });
      return "applied";
    });
    if (step === "done") return;
    if (step === "must_wait") await pause(buildPollMs);
  }
}

/**
 * For read-only programs. Rejects as `migrate` does, and with a `DatabaseError` of kind
 * `older-schema` where migrations are pending. Those are left to the program that owns the tables.
 * Writes nothing.
 */
export async function requireMigrated<Schema>(
  { transaction, dialect }: Database<Schema>,
  { name, migrations }: MigrateOptions,
): Promise<void> {
  const applied = await transaction(async (tx) =>
    (await dialect.hasTable(tx, "coinslot_migrations")) ? selectApplied(tx, name) : [],
  );
  refuseOthers(applied, { name, migrations });
  if (applied.length === migrations.length) return;
  const version = applied.length === 0 ? "not there" : `at version ${applied.length}`;
  throw new DatabaseError(
    "older-schema",
    `The ${name} tables are ${version}, and this program needs version ${migrations.length}: start the program that owns them, which migrates them.`,
  );
}

async function readApplied<Schema>(
  tx: Transaction<Schema>,
  { name, dialect }: { name: string; dialect: Dialect },
): Promise<readonly string[]> {
  if (!(await dialect.hasTable(tx, "coinslot_migrations"))) {
    await tx.schema
      .createTable("coinslot_migrations")
      .addColumn("name", dialect.types.text, (column) => column.notNull())
      .addColumn("version", dialect.types.integer, (column) => column.notNull())
      .addColumn("title", dialect.types.text, (column) => column.notNull())
      .addColumn("applied_at_ms", dialect.types.timestampMs, (column) => column.notNull())
      .addPrimaryKeyConstraint("coinslot_migrations_key", ["name", "version"])
      .execute();
  }
  return selectApplied(tx, name);
}

async function selectApplied<Schema>(
  tx: Transaction<Schema>,
  name: string,
): Promise<readonly string[]> {
  const { rows } = await sql<{ title: string }>`
    select title from coinslot_migrations where name = ${name} order by version
  `.execute(tx);
  return rows.map(({ title }) => title);
}

async function remember<Schema>(
  tx: Transaction<Schema>,
  row: { name: string; version: number; title: string; dialect: Dialect },
): Promise<void> {
  await sql`
    insert into coinslot_migrations (name, version, title, applied_at_ms)
    values (${row.name}, ${row.version}, ${row.title}, ${row.dialect.nowMs()})
  `.execute(tx);
}

function refuseOthers(applied: readonly string[], { name, migrations }: MigrateOptions): void {
  if (applied.length > migrations.length) {
    throw new DatabaseError(
      "newer-schema",
      `The ${name} tables are at version ${applied.length}, and this program supports ${migrations.length}: a newer release has used this database. Update this program, or use another database.`,
    );
  }
  const different = applied.findIndex((title, index) => migrations[index]?.title !== title);
  if (different >= 0) {
    throw new DatabaseError(
      "foreign-schema",
      `Version ${different + 1} of the ${name} tables is "${applied[different]}" in this database, and "${migrations[different]?.title}" in this program. Use the program that made them, or another database.`,
    );
  }
}
