import { sql, type Transaction } from "kysely";
import { describe, expect, it, vi } from "vitest";
import { buildIndex, createIndexStatement } from "./build-index.ts";
import { migrate } from "./migrate.ts";
import { createPostgresUrl, createSqliteUrl, openForTest } from "./testing/engines.ts";

const index = {
  name: "notes_open",
  table: "notes",
  columns: ["room", "text"],
  where: "is_open = 1",
  replaces: "notes_room",
};
/** A migration of the index's table. */
const rename = {
  name: "notes",
  migrations: [
    {
      title: "rename",
      async up<Schema>(transaction: Transaction<Schema>) {
        await sql`alter table notes rename column text to words`.execute(transaction);
      },
    },
  ],
};
const forEver = new AbortController().signal;

/** A table with its former index, on PostgreSQL. */
async function start() {
  const database = await openForTest({ url: await createPostgresUrl(), statementTimeoutMs: 3_000 });
  const run = (statement: string) => sql.raw(statement).execute(database.kysely);
  await run("create table notes (room text, text text, is_open integer)");
  await run("create index notes_room on notes (room) where is_open = 1");
  await run("insert into notes values ('a', 'b', 1)");
  const indexes = async () => {
    const { rows } = await sql<{ name: string; is_valid: boolean }>`
      select relname as name, indisvalid as is_valid from pg_index
      join pg_class on pg_class.oid = indexrelid where relname like 'notes%' order by relname
    `.execute(database.kysely);
    return rows.map(({ name, is_valid }) => `${name} ${is_valid ? "valid" : "invalid"}`);
  };
  return { database, run, indexes };
}

/** Runs `work` while a transaction is open that a build waits for. */
async function besideWriter(
  { database }: Awaited<ReturnType<typeof start>>,
  work: (transaction: Transaction<unknown>) => Promise<void>,
): Promise<void> {
  await database.transaction(async (transaction) => {
    await sql`insert into notes values ('c', 'd', 1)`.execute(transaction);
    await work(transaction);
  });
}

describe("an index that is built beside the traffic", () => {
  it("takes the place of a narrower one, and is left alone from then on", async () => {
    const here = await start();
    expect(await buildIndex(here.database, index, forEver)).toBe(true);
    expect(await here.indexes()).toEqual(["notes_open valid"]);
    expect(await buildIndex(here.database, index, forEver)).toBe(true);
    expect(await here.indexes()).toEqual(["notes_open valid"]);
  });

  it("waits for a transaction without a time limit, while others write and one process builds", async () => {
    const here = await start();
    let building: Promise<boolean> | undefined;
    await besideWriter(here, async (transaction) => {
      building = buildIndex(here.database, index, forEver);
      await vi.waitFor(
        async () =>
          expect(await here.indexes()).toEqual(["notes_open invalid", "notes_room valid"]),
        20_000,
      );
      await here.run("insert into notes values ('e', 'f', 1)");
      expect(await buildIndex(here.database, index, forEver)).toBe(false);
      // Longer than the limit of every other statement.
      for (let slept = 0; slept < 2; slept += 1) {
        await sql`select pg_sleep(2)`.execute(transaction);
      }
    });
    expect(await building).toBe(true);
    expect(await here.indexes()).toEqual(["notes_open valid"]);
    // The limits of its connection are those of the others again.
    for (let connection = 0; connection < 3; connection += 1) {
      const { rows } = await sql`show statement_timeout`.execute(here.database.kysely);
      expect(rows).toEqual([{ statement_timeout: "3s" }]);
    }
  });

  it("is built anew after a build that was cancelled, or died", async () => {
    const here = await start();
    const abort = new AbortController();
    await besideWriter(here, async () => {
      const building = buildIndex(here.database, index, abort.signal);
      const cancelled = expect(building).rejects.toMatchObject({ kind: "busy" });
      await vi.waitFor(
        async () =>
          expect(await here.indexes()).toEqual(["notes_open invalid", "notes_room valid"]),
        20_000,
      );
      abort.abort();
      await cancelled;
    });
    expect(await here.indexes()).toEqual(["notes_open invalid", "notes_room valid"]);
    await expect(buildIndex(here.database, index, abort.signal)).rejects.toThrow();
    expect(await buildIndex(here.database, index, forEver)).toBe(true);
    expect(await here.indexes()).toEqual(["notes_open valid"]);
  });

  it("fails with the cause where the connection of its build is lost, and is built anew", async () => {
    const here = await start();
    await besideWriter(here, async () => {
      const building = buildIndex(here.database, index, forEver);
      const lost = expect(building).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/^terminating connection/) },
      });
      await vi.waitFor(
        async () =>
          expect(await here.indexes()).toEqual(["notes_open invalid", "notes_room valid"]),
        20_000,
      );
      await here.run(`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like 'create index%notes_open%'
      `);
      await lost;
    });
    expect(await buildIndex(here.database, index, forEver)).toBe(true);
    expect(await here.indexes()).toEqual(["notes_open valid"]);
  });

  it("is waited for by a migration, without a lock that its table's writers would wait for", async () => {
    const here = await start();
    let building: Promise<boolean> | undefined;
    let migrating: Promise<void> | undefined;
    let waits = 0;
    await besideWriter(here, async () => {
      building = buildIndex(here.database, index, forEver);
      await vi.waitFor(
        async () =>
          expect(await here.indexes()).toEqual(["notes_open invalid", "notes_room valid"]),
        20_000,
      );
      await new Promise<void>((waiting) => {
        migrating = migrate(here.database, rename, async () => {
          waits += 1;
          waiting();
          await building;
        });
      });
      await here.run("insert into notes values ('e', 'f', 1)");
    });
    await migrating;
    expect(await building).toBe(true);
    expect(waits).toBe(1);
    await here.run("insert into notes (room, words) values ('g', 'h')");
    expect(await here.indexes()).toEqual(["notes_open valid"]);
  });

  it("is left to its migration on SQLite", async () => {
    const database = await openForTest({ url: await createSqliteUrl() });
    expect(await buildIndex(database, index, forEver)).toBe(true);
    expect(createIndexStatement(index).replaceAll(/ +/g, " ")).toBe(
      "create index notes_open on notes (room, text) where is_open = 1",
    );
  });
});
