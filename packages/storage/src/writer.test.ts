import { useProgram } from "@coinslot/devnet/use-program";
import { sql } from "kysely";
import { Client } from "pg";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Database } from "./database.ts";
import { migrate } from "./migrate.ts";
import { createPostgresUrl, createSqliteUrl, engines, openForTest } from "./testing/engines.ts";
import { killTestProcess, nextMessage, startTestProcess, testProgram } from "./testing/process.ts";
import {
  type AmountSchema,
  amountMigrations,
  type CounterSchema,
  counterMigrations,
} from "./testing/schema.ts";
import { createWriter } from "./writer.ts";

async function openCounters(url: string) {
  const database = await openForTest<CounterSchema>({ url });
  await migrate(database, { name: "counters", migrations: counterMigrations });
  return database;
}

const program = useProgram(testProgram);

describe.each(engines)("a writer on $engine", ({ createUrl }) => {
  it("commits concurrent pieces as a group, each with its result", async () => {
    const database = await openCounters(await createUrl());
    const { write } = createWriter(database);
    const ids = Array.from({ length: 300 }, (_, index) => index);
    const results = await Promise.all(
      ids.map((id) =>
        write(async (tx) => {
          await tx.insertInto("counters").values({ id, value: id }).execute();
          return id * 2;
        }),
      ),
    );
    expect(results).toEqual(ids.map((id) => id * 2));
    const rows = await database.kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(rows.map(({ id }) => id)).toEqual(ids);
  });

  it("rolls back a failing piece, and that alone", async () => {
    const database = await openCounters(await createUrl());
    const { write } = createWriter(database);
    const insert = (id: number, fail?: "throw" | "violate") =>
      write(async (tx) => {
        await tx.insertInto("counters").values({ id, value: id }).execute();
        if (fail === "throw") throw new Error("changed my mind");
        if (fail === "violate") await tx.insertInto("counters").values({ id, value: 0 }).execute();
      });
    const outcomes = await Promise.allSettled([
      insert(1),
      insert(2, "throw"),
      insert(3),
      insert(4, "violate"),
      insert(5),
    ]);

    expect(outcomes.map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
    const [, thrown, , violation] = outcomes;
    expect(thrown).toMatchObject({ reason: { message: "changed my mind" } });
    expect(violation).toMatchObject({ reason: { kind: "unique-violation", retryable: false } });
    const rows = await database.kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(rows.map(({ id }) => id)).toEqual([1, 3, 5]);
  });

  it("lets exactly one of the racing pieces win a guarded row", async () => {
    const database = await openCounters(await createUrl());
    const { write } = createWriter(database);
    await write((tx) => tx.insertInto("counters").values({ id: 1, value: 0 }).execute());
    const changes = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        write((tx) =>
          tx
            .updateTable("counters")
            .set({ value: index + 1 })
            .where("id", "=", 1)
            .where("value", "=", 0)
            .executeTakeFirst(),
        ),
      ),
    );
    expect(changes.filter(({ numUpdatedRows }) => numUpdatedRows === 1n)).toHaveLength(1);
  });

  it("resolves no piece before other connections can read it", async () => {
    const url = await createUrl();
    const database = await openCounters(url);
    const other = await openForTest<CounterSchema>({ url });
    const { write } = createWriter(database);
    await Promise.all(
      Array.from({ length: 50 }, async (_, id) => {
        await write((tx) => tx.insertInto("counters").values({ id, value: id }).execute());
        const row = await other.kysely
          .selectFrom("counters")
          .selectAll()
          .where("id", "=", id)
          .executeTakeFirst();
        expect(row).toEqual({ id, value: id });
      }),
    );
  });

  it("has every resolved piece on disk when its process is killed", async () => {
    const url = await createUrl();
    const database = await openCounters(url);
    const child = startTestProcess(program(), "write", url);
    let last = 0;
    child.on("message", (id) => {
      last = Number(id);
    });
    while (last < 20) await nextMessage(child);
    await killTestProcess(child);

    const rows = await database.kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(rows.length).toBeGreaterThanOrEqual(last);
    expect(rows.map(({ id }) => id)).toEqual(rows.map((_, index) => index + 1));
  });

  it("fails every piece with the error of a closed database", async () => {
    const database = await openCounters(await createUrl());
    const { write } = createWriter(database);
    await database.close();
    await expect(write((tx) => tx.selectFrom("counters").selectAll().execute())).rejects.toThrow();
  });
});

describe("a writer on sqlite", () => {
  it("yields to timers and sockets between two groups", async () => {
    const database = await openCounters("sqlite::memory:");
    const { write } = createWriter(database);
    let timerRan = false;
    setTimeout(() => {
      timerRan = true;
    }, 1);
    for (let id = 0; !timerRan; id++) {
      await write((tx) => tx.insertInto("counters").values({ id, value: id }).execute());
    }
    expect(timerRan).toBe(true);
  });

  it("loses no resolved piece when the disk is full, and continues when there is room again", async () => {
    const url = await createSqliteUrl();
    const database = await openForTest<AmountSchema>({ url });
    await migrate(database, { name: "amounts", migrations: amountMigrations });
    const { write } = createWriter(database);
    const amount = database.dialect.amount.encode(1n);
    const insert = (id: number) =>
      write((tx) =>
        tx
          .insertInto("amounts")
          .values({ id, amount, note: "x".repeat(3_000) })
          .execute(),
      );
    const limitPages = (pages: number) =>
      sql.raw(`pragma max_page_count = ${pages}`).execute(database.kysely);
    await limitPages(20);
    const ids = Array.from({ length: 60 }, (_, id) => id);
    const outcomes = await Promise.allSettled(ids.map(insert));
    const kept = ids.filter((id) => outcomes[id]?.status === "fulfilled");
    const stored = await database.kysely.selectFrom("amounts").select("id").orderBy("id").execute();
    expect(stored.map(({ id }) => id)).toEqual(kept);
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused.length).toBeGreaterThan(0);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ kind: "storage-full", retryable: true });
    }
    await limitPages(10_000);
    await insert(1_000);
  });
});

describe.each(engines)("durability on $engine", ({ createUrl }) => {
  it("resolves a piece without a sync no later than its neighbours, and keeps all of them", async () => {
    const url = await createUrl();
    const database = await openCounters(url);
    const { write } = createWriter(database);
    const insert = (id: number, durability?: "disk" | "process") =>
      write((tx) => tx.insertInto("counters").values({ id, value: id }).execute(), { durability });
    const told: string[] = [];
    await Promise.all([
      insert(1, "disk").then(() => told.push("disk")),
      insert(2, "process").then(() => told.push("process")),
      insert(3).then(() => told.push("default")),
    ]);
    expect(told).toHaveLength(3);
    if (database.engine === "sqlite") expect(told[0]).toBe("process");
    const rows = await database.kysely.selectFrom("counters").select("id").orderBy("id").execute();
    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  it("reports when a write is visible to other connections", async () => {
    const database = await openCounters(await createUrl());
    const seen: string[] = [];
    await database.transaction(
      async (tx) => {
        await tx.insertInto("counters").values({ id: 1, value: 1 }).execute();
        seen.push("work");
      },
      { durability: "process", onCommit: () => seen.push("commit") },
    );
    expect(seen).toEqual(["work", "commit"]);
    const undone = database.transaction(
      async () => {
        throw new Error("changed my mind");
      },
      { onCommit: () => seen.push("never") },
    );
    await expect(undone).rejects.toThrow("changed my mind");
    expect(seen).toEqual(["work", "commit"]);
  });
});

describe("a PostgreSQL transaction that asks for its durability", () => {
  /**
   * Records the setting under which each row is committed: a deferred trigger runs at the commit.
   */
  async function createRecorder(url: string) {
    const database = await openForTest<unknown>({ url });
    await sql`create table settings (at_commit text)`.execute(database.kysely);
    await sql`create function record_setting() returns trigger language plpgsql as $$ begin
      update settings set at_commit = current_setting('synchronous_commit'); return null;
      end $$`.execute(database.kysely);
    await sql`create constraint trigger records after insert on settings
      deferrable initially deferred for each row execute function record_setting()`.execute(
      database.kysely,
    );
    return database;
  }

  async function settingAtCommit(database: Database<unknown>, durability?: "disk" | "process") {
    await sql`delete from settings`.execute(database.kysely);
    await database.transaction(
      (tx) => sql`insert into settings (at_commit) values ('not known')`.execute(tx),
      { durability },
    );
    const found = sql<{ at_commit: string }>`select at_commit from settings`;
    return (await found.execute(database.kysely)).rows[0]?.at_commit;
  }

  it("commits by it, whatever the database's default is, and no later one does", async () => {
    const url = await createPostgresUrl();
    const durable = await createRecorder(url);
    expect(await settingAtCommit(durable)).toBe("on");
    expect(await settingAtCommit(durable, "process")).toBe("off");
    expect(await settingAtCommit(durable)).toBe("on");
    const careless = await openForTest<unknown>({ url, durable: false });
    expect(await settingAtCommit(careless)).toBe("off");
    expect(await settingAtCommit(careless, "disk")).toBe("on");
    expect(await settingAtCommit(careless)).toBe("off");
  });

  it("sends no statement more for it", async () => {
    const database = await openForTest<unknown>({ url: await createPostgresUrl() });
    const query = vi.spyOn(Client.prototype, "query");
    onTestFinished(() => query.mockRestore());
    await database.transaction((tx) => sql`select 1`.execute(tx), { durability: "process" });
    expect(query.mock.calls).toHaveLength(3);
  });

  it("is rolled back where a statement failed, though its work ended well", async () => {
    const database = await openForTest<unknown>({ url: await createPostgresUrl() });
    await sql`create table kept (id bigint)`.execute(database.kysely);
    const written = database.transaction(
      async (tx) => {
        await sql`insert into kept values (1)`.execute(tx);
        await sql`select 1 / 0`.execute(tx).catch(() => {});
      },
      { durability: "process" },
    );
    await expect(written).rejects.toMatchObject({ kind: "statement" });
    expect((await sql`select id from kept`.execute(database.kysely)).rows).toEqual([]);
    // The connection is used again, and its next transaction is whole.
    await database.transaction((tx) => sql`insert into kept values (2)`.execute(tx), {
      durability: "process",
    });
    expect((await sql`select id from kept`.execute(database.kysely)).rows).toEqual([{ id: 2 }]);
  });
});
