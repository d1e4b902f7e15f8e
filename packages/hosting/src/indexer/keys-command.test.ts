import { existsSync } from "node:fs";
import { openKeyStore } from "@coinslot/indexer";
import { openDatabase } from "@coinslot/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabaseUrl, engines } from "../testing/database-url.ts";
import { KeysUsageError, readDuration, runKeysCommand } from "./keys-command.ts";
import { ServiceStartError } from "./service-start-error.ts";

async function run(databaseUrl: string, ...args: string[]) {
  const printed: string[] = [];
  const notes: string[] = [];
  const output = {
    out: (line: string) => printed.push(line),
    note: (line: string) => notes.push(line),
  };
  await runKeysCommand(args, { databaseUrl, output });
  return { printed, notes };
}

describe.each(engines)("the keys commands with %s", (engine) => {
  it("create, list and revoke", async () => {
    const url = await createDatabaseUrl(engine);
    expect(
      (await run(url, "keys-not-yet").catch((error: unknown) => error)) instanceof KeysUsageError,
    ).toBe(true);
    const limits = ["--ttl", "30d", "--max", "100", "--time-window", "10s"];
    const made = await run(url, "create", "--owner", "alice", "--label", "shop", ...limits);
    const [key = ""] = made.printed;
    expect(made.printed).toHaveLength(1);
    await run(url, "create", "--owner", "bob");

    const database = await openDatabase<Record<string, never>>({ url });
    onTestFinished(() => database.close());
    const keys = await openKeyStore(database);
    const check = await keys.check(key);
    expect(check).toMatchObject({
      state: "valid",
      key: {
        owner: "alice",
        label: "shop",
        ttlMs: 30 * 86_400_000,
        limit: { max: 100, windowMs: 10_000 },
      },
    });
    expect((await run(url, "list")).printed).toHaveLength(2);
    const { printed } = await run(url, "list", "--owner", "alice", "--json");
    const [listed] = JSON.parse(printed.join("\n"));
    expect(listed).toMatchObject({ owner: "alice", label: "shop" });
    expect(printed.join()).not.toContain(key.slice(17));

    await run(url, "revoke", listed.hashedKey);
    expect(await keys.check(key)).toEqual({ state: "invalid" });
    await expect(run(url, "revoke", listed.hashedKey)).rejects.toThrow(KeysUsageError);
  });
});

describe("the keys commands", () => {
  it("read an existing database, and create none", async () => {
    const sqlite = await createDatabaseUrl("sqlite");
    for (const args of [["list"], ["list", "--json"], ["revoke", "ab"]]) {
      await expect(run(sqlite, ...args)).rejects.toThrow(/The database .* does not exist yet/);
    }
    expect(existsSync(sqlite.replace("sqlite:", ""))).toBe(false);

    const postgres = await createDatabaseUrl("postgres");
    await expect(run(postgres, "list")).rejects.toThrow(
      /tables are not there.* migrates them\. Update and restart/,
    );
    const database = await openDatabase<object>({ url: postgres });
    onTestFinished(() => database.close());
    await openKeyStore(database);
    expect(await run(postgres, "list")).toEqual({ printed: [], notes: ["No keys."] });
  });

  it("list adds no tables to a database of another program", async () => {
    const url = await createDatabaseUrl("sqlite");
    const database = await openDatabase<object>({ url });
    onTestFinished(() => database.close());
    await database.kysely.schema.createTable("notes").addColumn("id", "integer").execute();
    await expect(run(url, "list")).rejects.toThrow(/tables are not there/);
    const tables = await database.kysely.introspection.getTables();
    expect(tables.map(({ name }) => name)).toEqual(["notes"]);
  });

  it("refuse unknown arguments before they open a database", async () => {
    for (const args of [
      [],
      ["make"],
      ["create"],
      ["create", "--owner", ""],
      ["create", "--owner", "a", "--ttl", "soon"],
      ["create", "--owner", "a", "--max", "5"],
      ["create", "--owner", "a", "--max", "many", "--time-window", "1s"],
      ["create", "--owner", "a", "--max", "0", "--time-window", "1s"],
      ["create", "--owner", "a", "--colour", "blue"],
      ["list", "alice"],
      ["revoke"],
      ["revoke", "a", "b"],
    ]) {
      await expect(run("postgres://127.0.0.1:1/none", ...args)).rejects.toThrow(KeysUsageError);
    }
  });

  it("report a database that is away or missing in one sentence", async () => {
    for (const url of ["postgres://127.0.0.1:1/none", "mysql://127.0.0.1/none"]) {
      await expect(run(url, "list")).rejects.toThrow(ServiceStartError);
      await expect(run(url, "list")).rejects.toThrow(/set INDEXER_DATABASE to another/);
      await expect(run(url, "list")).rejects.toThrow(/^The keys could not be read:\n/);
      await expect(run(url, "create", "--owner", "a")).rejects.toThrow(
        /^The keys could not be changed:\n/,
      );
    }
  });

  it("read times with their unit", () => {
    expect(readDuration("--ttl", "45s")).toBe(45_000);
    expect(readDuration("--ttl", "90m")).toBe(5_400_000);
    expect(readDuration("--ttl", "12h")).toBe(43_200_000);
    expect(readDuration("--ttl", "30d")).toBe(2_592_000_000);
    for (const text of ["", "0s", "10", "1w", "-1s", "1.5h"]) {
      expect(() => readDuration("--ttl", text)).toThrow(KeysUsageError);
    }
  });
});
