import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describeSchema, restoreDatabase, withDatabase } from "@coinslot/devnet";
import { migrate, openDatabase } from "@coinslot/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { apiMigrations } from "../../api/api-migrations.ts";
import { openKeyStore } from "../../api/api-stores.ts";
import { createIndexer } from "../../create-indexer.ts";
import { engines } from "../../testing/engines.ts";
import { alice, bob, fixtureChain } from "../../testing/fixture-data.ts";
import { rollBack } from "../roll-back.ts";
import { indexerMigrations } from "./indexer-migrations.ts";

/**
 * Databases of killed processes, one for each schema that has landed, and the number of migrations
 * it had.
 */
const fixtures = [
  { name: "01-654c325", migrations: 2 },
  { name: "02-d8de07e", migrations: 3 },
];
const usdt = { blockchain: "devnet", token: "usdt" };

describe.each(engines)("the indexer's migrations, on $engine", ({ engine, createUrl }) => {
  // A dump has each statement on one line, so its spaces are not part of the schema.
  const readSchema = async (url: string) => {
    const statements = await withDatabase(url, describeSchema);
    const lines = statements.map((statement) => statement.replaceAll(/\s+/g, " ").trim());
    return `${lines.join("\n").replaceAll("), ", "),\n")}\n`;
  };
  const schemaFile = (count: number) => `./fixtures/schema-${count}.${engine}.sql`;
  const restore = async (name: string) => {
    const url = await createUrl();
    const file = join(import.meta.dirname, `fixtures/${name}.${engine}.sql`);
    await restoreDatabase(url, await readFile(file, "utf8"));
    return url;
  };

  it("produce the pinned schema at each step", async () => {
    const url = await createUrl();
    const database = await openDatabase({ url });
    onTestFinished(() => database.close());
    for (const count of indexerMigrations.migrations.keys()) {
      const migrations = indexerMigrations.migrations.slice(0, count + 1);
      await migrate(database, { ...indexerMigrations, migrations });
      await expect(await readSchema(url)).toMatchFileSnapshot(schemaFile(count + 1));
    }
    await openKeyStore(database);
    await expect(await readSchema(url)).toMatchFileSnapshot(`./fixtures/with-api.${engine}.sql`);
  });

  it.each(fixtures)("find the pinned schema in $name", async ({ name, migrations }) => {
    const schema = await readSchema(await restore(name));
    const pinned = await readFile(join(import.meta.dirname, schemaFile(migrations)), "utf8");
    // Besides, it has the tables of the API.
    expect(schema.split("\n")).toEqual(expect.arrayContaining(pinned.split("\n")));
  });

  it.each([
    ["indexer", indexerMigrations.migrations.length],
    ["indexer-api", apiMigrations.migrations.length],
  ])(
    "refuse tables of %s that a newer program has migrated, and name both versions",
    async (tables, count) => {
      const url = await createUrl();
      const open = async () => {
        const indexer = createIndexer({ chains: [fixtureChain], database: url });
        onTestFinished(() => indexer.close());
        await openKeyStore(await indexer.database());
        await indexer.close();
      };
      await open();
      await withDatabase(url, ({ execute }) =>
        execute(
          `insert into coinslot_migrations (name, version, title, applied_at_ms)
          values ('${tables}', ${count + 1}, 'a step of the next release', 1)`,
        ),
      );
      await expect(open()).rejects.toMatchObject({
        kind: "newer-schema",
        message: expect.stringContaining(
          `The ${tables} tables are at version ${count + 1}, and this program supports ${count}: a newer release has used this database.`,
        ),
      });
    },
  );

  it.each(fixtures)("keep the data of $name, and continue with it", async ({ name }) => {
    const url = await restore(name);
    const indexer = createIndexer({ chains: [fixtureChain], database: url });
    onTestFinished(() => indexer.close());
    const query = { ...usdt, address: bob, fromMs: 0, limit: 100 } as const;
    const amounts = async () =>
      (await indexer.readTransfers({ ...query, sort: "asc" })).map(({ amount }) => amount);
    expect(await amounts()).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n]);
    expect(await indexer.readBalance({ ...usdt, address: alice })).toBe(1_000n - 28n);
    const { events } = await indexer.readEvents({ ...usdt, address: bob, after: 0, limit: 100 });
    expect(events.map(({ type, transfer }) => [type, transfer.blockNumber])).toEqual([
      ["transfer", 6],
      ["transfer", 7],
      ["transfer", 8],
      ["retraction", 8],
    ]);
    const database = await indexer.database();
    const keys = await openKeyStore(database);
    expect(await keys.list()).toMatchObject([{ owner: "fixture" }]);
    await expect(await readSchema(url)).toMatchFileSnapshot(`./fixtures/with-api.${engine}.sql`);

    const { chainId } = fixtureChain;
    await database.transaction((transaction) =>
      rollBack(transaction, database.dialect, { chainId, block: 2 }),
    );
    expect(await amounts()).toEqual([1n, 2n]);
  });
});
