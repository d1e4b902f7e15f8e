import { mkdir, writeFile } from "node:fs/promises";
import { inspect } from "node:util";
import { type ColumnType, type Kysely, sql } from "kysely";
import { describe, expect, it } from "vitest";
import { openDatabase } from "./database.ts";
import { migrate } from "./migrate.ts";
import { createPostgresUrl, createSqliteUrl, engines, openForTest } from "./testing/engines.ts";
import { type CounterSchema, counterMigrations } from "./testing/schema.ts";

async function openCounters(url: string, options: { lockTimeoutMs?: number } = {}) {
  const database = await openForTest<CounterSchema>({ url, ...options });
  await migrate(database, { name: "counters", migrations: counterMigrations });
  return database;
}

describe.each(engines)("a database on $engine", ({ engine, createUrl }) => {
  it("names its engine", async () => {
    const database = await openForTest({ url: await createUrl() });
    expect(database.engine).toBe(engine);
    expect(database.dialect.engine).toBe(engine);
  });

  it("commits a transaction as a whole, or rolls it back", async () => {
    const { kysely, transaction } = await openCounters(await createUrl());
    const result = await transaction(async (tx) => {
      await tx.insertInto("counters").values({ id: 1, value: 1 }).execute();
      await tx.insertInto("counters").values({ id: 2, value: 2 }).execute();
      return "done";
    });
    expect(result).toBe("done");
    await expect(
      transaction(async (tx) => {
        await tx.deleteFrom("counters").execute();
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    expect(await kysely.selectFrom("counters").selectAll().execute()).toHaveLength(2);
  });

  it("hides uncommitted writes from other connections", async () => {
    const { kysely, transaction } = await openCounters(await createUrl());
    await transaction(async (tx) => {
      await tx.insertInto("counters").values({ id: 1, value: 1 }).execute();
      expect(await kysely.selectFrom("counters").selectAll().execute()).toEqual([]);
      expect(await tx.selectFrom("counters").selectAll().execute()).toHaveLength(1);
    });
  });

  it("loses no update of concurrent transactions", async () => {
    const database = await openCounters(await createUrl());
    await database.kysely.insertInto("counters").values({ id: 1, value: 0 }).execute();
    await Promise.all(
      Array.from({ length: 20 }, () =>
        database.transaction(async (tx) => {
          const { value } = await tx
            .selectFrom("counters")
            .select("value")
            .where("id", "=", 1)
            .$call(database.dialect.forUpdate)
            .executeTakeFirstOrThrow();
          await tx
            .updateTable("counters")
            .set({ value: value + 1 })
            .where("id", "=", 1)
            .execute();
        }),
      ),
    );
    const rows = await database.kysely.selectFrom("counters").select("value").execute();
    expect(rows).toEqual([{ value: 20 }]);
  });

  it("waits for another writer in a statement that returns rows, and names a violated constraint", async () => {
    const url = await createUrl();
    const writer = await openCounters(url);
    const other = await openCounters(url);
    const insert = () =>
      other.kysely.insertInto("counters").values({ id: 1, value: 1 }).returning("value").execute();
    const inserted = await writer.transaction(async (tx) => {
      await tx.insertInto("counters").values({ id: 2, value: 2 }).execute();
      const rows = insert();
      // On SQLite the transaction holds the file's only write lock, and the other finds it held.
      await expect
        .poll(() => other.kysely.selectFrom("counters").select("id").execute())
        .toBeDefined();
      return { rows };
    });
    expect(await inserted.rows).toEqual([{ value: 1 }]);
    await expect(insert()).rejects.toMatchObject({ kind: "unique-violation" });
  });

  it("serialises transactions by an advisory key", async () => {
    const database = await openCounters(await createUrl());
    const maxBelow = async (limit: number) =>
      database.transaction(async (tx) => {
        await database.dialect.lockKey(tx, "payer 0x12");
        const { count } = await tx
          .selectFrom("counters")
          .select(({ fn }) => fn.countAll<number>().as("count"))
          .executeTakeFirstOrThrow();
        if (count >= limit) return false;
        await tx.insertInto("counters").values({ id: count, value: count }).execute();
        return true;
      });
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => maxBelow(5)));
    expect(outcomes.filter(Boolean)).toHaveLength(5);
  });

  it("gives workers different rows of a queue", async () => {
    const database = await openCounters(await createUrl());
    const ids = Array.from({ length: 12 }, (_, id) => id);
    await database.dialect.insertMany(
      database.kysely,
      "counters",
      ids.map((id) => ({ id, value: 0 })),
    );
    const taken = await Promise.all(
      ids.map(() =>
        database.transaction(async (tx) => {
          const { id } = await tx
            .selectFrom("counters")
            .select("id")
            .where("value", "=", 0)
            .orderBy("id")
            .limit(1)
            .$call(database.dialect.forUpdateSkipLocked)
            .executeTakeFirstOrThrow();
          await tx.updateTable("counters").set({ value: 1 }).where("id", "=", id).execute();
          return id;
        }),
      ),
    );
    expect(taken.sort((a, b) => a - b)).toEqual(ids);
  });

  it("generates increasing ids, and none twice", async () => {
    const { kysely, transaction, dialect } = await openForTest<{
      events: { id: ColumnType<number, never, never>; note: string };
    }>({ url: await createUrl() });
    await kysely.schema
      .createTable("events")
      .addColumn("id", dialect.types.integer, dialect.autoIncrement)
      .addColumn("note", dialect.types.text)
      .execute();
    const insert = () =>
      kysely.insertInto("events").values({ note: "" }).returning("id").executeTakeFirstOrThrow();
    const first = await insert();
    const second = await insert();
    await transaction((tx) => tx.deleteFrom("events").execute());
    const third = await insert();
    expect(second.id).toBeGreaterThan(first.id);
    expect(third.id).toBeGreaterThan(second.id);
  });

  it("reads integers exactly, or throws", async () => {
    const { kysely } = await openCounters(await createUrl());
    const value = Number.MAX_SAFE_INTEGER;
    await kysely.insertInto("counters").values({ id: 1, value }).execute();
    const read = () => kysely.selectFrom("counters").select("value").execute();
    expect(await read()).toEqual([{ value }]);
    // By a literal: Node's own SQLite binds numbers as floating point ones.
    await kysely.updateTable("counters").set({ value: sql<number>`value + 2` }).execute();
    await expect(read()).rejects.toThrow(/9007199254740993/);
  });

  it("commits a transaction in which a row could not be read", async () => {
    const { kysely, transaction } = await openCounters(await createUrl());
    await transaction(async (tx) => {
      const value = sql<number>`9007199254740993`;
      const unreadable = tx.insertInto("counters").values({ id: 1, value }).returningAll();
      await expect(unreadable.execute()).rejects.toThrow(/9007199254740993/);
      await tx.insertInto("counters").values({ id: 2, value: 2 }).execute();
    });
    const ids = await kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(ids).toEqual([{ id: 1 }, { id: 2 }]);
  });

  it("names the constraint of a refused write", async () => {
    const { kysely } = await openCounters(await createUrl());
    const insert = () => kysely.insertInto("counters").values({ id: 1, value: 1 }).execute();
    await insert();
    await expect(insert()).rejects.toMatchObject({ kind: "unique-violation", retryable: false });
    await expect(
      sql`insert into counters (id, value) values (2, null)`.execute(kysely),
    ).rejects.toMatchObject({ kind: "constraint-violation" });
    await expect(sql`select * from nowhere`.execute(kysely)).rejects.toMatchObject({
      kind: "statement",
    });
  });

  it("times out a query that waits for its own transaction", async () => {
    const { kysely, transaction } = await openCounters(await createUrl(), { lockTimeoutMs: 50 });
    await kysely.insertInto("counters").values({ id: 1, value: 1 }).execute();
    const update = (handle: Kysely<CounterSchema>) =>
      handle.updateTable("counters").set({ value: 2 }).where("id", "=", 1).execute();
    await expect(
      transaction(async (tx) => {
        await update(tx);
        await update(kysely);
      }),
    ).rejects.toMatchObject({ kind: "busy", retryable: true });
    await update(kysely);
  });

  it("closes after its running statements, and may be closed again", async () => {
    const database = await openDatabase<CounterSchema>({ url: await createUrl() });
    await migrate(database, { name: "counters", migrations: counterMigrations });
    const running = database.transaction((tx) =>
      tx.insertInto("counters").values({ id: 1, value: 1 }).execute(),
    );
    await Promise.all([running, running.then(() => database.close())]);
    await database.close();
  });

  it("returns its time", async () => {
    const { kysely, dialect } = await openForTest({ url: await createUrl() });
    const { now } = await kysely.selectNoFrom(dialect.nowMs().as("now")).executeTakeFirstOrThrow();
    expect(Math.abs(now - Date.now())).toBeLessThan(10_000);
    expect(Number.isSafeInteger(now)).toBe(true);
  });
});

describe("a SQLite file", () => {
  it("shared with another writing process waits for its lock", async () => {
    const url = await createSqliteUrl();
    const database = await openCounters(url);
    const other = await openForTest<CounterSchema>({ url });
    const insert = (id: number) =>
      other.kysely.insertInto("counters").values({ id, value: id }).execute();
    const waiting = await database.transaction(async (tx) => {
      await tx.insertInto("counters").values({ id: 1, value: 1 }).execute();
      return { inserted: insert(2) };
    });
    await waiting.inserted;
    expect(await database.kysely.selectFrom("counters").selectAll().execute()).toHaveLength(2);
  });

  it("throws when it cannot be opened", async () => {
    const url = await createSqliteUrl();
    const path = url.slice("sqlite:".length);
    await expect(openDatabase({ url: `${url}.d/nowhere/x.db` })).rejects.toMatchObject({
      kind: "configuration",
      message: expect.stringContaining("nowhere/x.db"),
    });
    await expect(openDatabase({ url, readOnly: true })).rejects.toMatchObject({
      kind: "configuration",
    });
    await mkdir(`${path}.folder`);
    await expect(openDatabase({ url: `${url}.folder` })).rejects.toMatchObject({
      kind: "configuration",
    });
    await writeFile(
      path,
      "this is no database, but it is longer than a header of one hundred bytes ".repeat(3),
    );
    await expect(openDatabase({ url })).rejects.toMatchObject({ kind: "configuration" });
  });
});

describe("a PostgreSQL server", () => {
  it("is reported without the password when it is unreachable, or lacks the database", async () => {
    const real = new URL(await createPostgresUrl());
    const closedPort = new URL(real);
    closedPort.port = "1";
    const cases = [
      { url: closedPort, expected: { kind: "unreachable", retryable: true } },
      {
        url: new URL("/no_such_database", real),
        expected: { kind: "configuration", retryable: false },
      },
    ];
    for (const { url, expected } of cases) {
      url.username = "postgres";
      url.password = "hunter2";
      const error: unknown = await openDatabase({ url: url.href }).catch(
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject(expected);
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("hunter2");
    }
  });
});
