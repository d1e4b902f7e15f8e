import { useProgram } from "@coinslot/devnet/use-program";
import { describe, expect, it } from "vitest";
import { type Migration, migrate, requireMigrated } from "./migrate.ts";
import { engines, openForTest } from "./testing/engines.ts";
import { nextMessage, startTestProcess, testProgram } from "./testing/process.ts";
import { type CounterSchema, counterMigrations } from "./testing/schema.ts";

const name = "counters";
const migrations = counterMigrations;

const program = useProgram(testProgram);

describe.each(engines)("migrations on $engine", ({ createUrl }) => {
  it("are applied in order, once", async () => {
    const database = await openForTest<CounterSchema>({ url: await createUrl() });
    await migrate(database, { name, migrations: migrations.slice(0, 1) });
    await database.kysely.insertInto("counters").values({ id: 1, value: 7 }).execute();

    await migrate(database, { name, migrations });
    await migrate(database, { name, migrations });

    expect(await database.kysely.selectFrom("counters").selectAll().execute()).toEqual([
      { id: 1, value: 7 },
    ]);
  });

  it("coexist in one database for several packages", async () => {
    const database = await openForTest({ url: await createUrl() });
    await migrate(database, { name, migrations });
    await migrate(database, {
      name: "other",
      migrations: [
        {
          title: "other",
          async up(tx, { types }) {
            await tx.schema.createTable("other").addColumn("id", types.integer).execute();
          },
        },
      ],
    });
    await migrate(database, { name, migrations });
  });

  it("are rolled back when they fail, and earlier ones stay", async () => {
    const database = await openForTest({ url: await createUrl() });
    const failing: Migration = {
      title: "half",
      async up(tx, { types }) {
        await tx.schema.createTable("half").addColumn("id", types.integer).execute();
        throw new Error("in the middle");
      },
    };
    await expect(migrate(database, { name, migrations: [...migrations, failing] })).rejects.toThrow(
      "in the middle",
    );

    const hasTable = (table: string) =>
      database.transaction((tx) => database.dialect.hasTable(tx, table));
    expect(await hasTable("half")).toBe(false);
    expect(await hasTable("counters")).toBe(true);
  });

  it("refuse a database of a newer release, and name the remedy", async () => {
    const database = await openForTest({ url: await createUrl() });
    await migrate(database, { name, migrations });
    await expect(
      migrate(database, { name, migrations: migrations.slice(0, 1) }),
    ).rejects.toMatchObject({
      kind: "newer-schema",
      retryable: false,
      message: expect.stringMatching(
        /counters tables are at version 2.* supports 1.*Update this program/,
      ),
    });
  });

  it("refuse a database with other migrations", async () => {
    const database = await openForTest({ url: await createUrl() });
    await migrate(database, { name, migrations });
    const others = migrations.map((migration) => ({
      ...migration,
      title: `my ${migration.title}`,
    }));
    await expect(migrate(database, { name, migrations: others })).rejects.toMatchObject({
      kind: "foreign-schema",
    });
  });

  it("let a reader pass when all are applied", async () => {
    const url = await createUrl();
    await migrate(await openForTest({ url }), { name, migrations });
    const reader = await openForTest<CounterSchema>({ url, readOnly: true });
    await migrate(reader, { name, migrations });
    await expect(
      reader.kysely.insertInto("counters").values({ id: 1, value: 1 }).execute(),
    ).rejects.toThrow(/read.?only/);
  });

  it("are checked but not applied by a reader", async () => {
    const url = await createUrl();
    const owner = await openForTest({ url });
    const reader = await openForTest<CounterSchema>({ url, readOnly: true });
    const older = { kind: "older-schema", retryable: false };
    await expect(requireMigrated(reader, { name, migrations })).rejects.toMatchObject(older);
    await migrate(owner, { name, migrations: migrations.slice(0, 1) });
    await expect(requireMigrated(reader, { name, migrations })).rejects.toMatchObject({
      ...older,
      message: expect.stringMatching(/at version 1.* needs version 2.*which migrates them/),
    });
    await migrate(owner, { name, migrations });
    await requireMigrated(reader, { name, migrations });
    await expect(
      requireMigrated(reader, { name, migrations: migrations.slice(0, 1) }),
    ).rejects.toMatchObject({ kind: "newer-schema" });
  });

  it("are applied once when processes race", async () => {
    const url = await createUrl();
    const children = ["migrate", "migrate", "migrate"].map((command) =>
      startTestProcess(program(), command, url),
    );
    expect(await Promise.all(children.map(nextMessage))).toEqual(["ready", "ready", "ready"]);
    const outcomes = children.map(nextMessage);
    for (const child of children) child.send("go");
    expect(await Promise.all(outcomes)).toEqual(["done", "done", "done"]);

    const database = await openForTest<CounterSchema>({ url });
    await database.kysely.insertInto("counters").values({ id: 1, value: 1 }).execute();
  });
});
