import { type Database, migrate, openDatabase } from "@coinslot/storage";
import { CompiledQuery, sql } from "kysely";
import type { Address } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import { indexerMigrations } from "../store/migrations/indexer-migrations.ts";
import type { IndexerSchema } from "../store/schema.ts";
import { engines } from "../testing/engines.ts";
import { indexerOutbox } from "./indexer-outbox.ts";
import { indexerWebhooks } from "./indexer-webhooks.ts";
import { changeWatched, findWatchers, maxWatched } from "./watched-addresses.ts";

const addressOf = (value: number): Address => `0x${value.toString(16).padStart(40, "0")}`;
const range = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => addressOf(from + index * 7_919));

describe.each(engines)("watched addresses, on $engine", ({ engine, createUrl }) => {
  async function openTest(): Promise<Database<IndexerSchema>> {
    const database = await openDatabase<IndexerSchema>({ url: await createUrl(), durable: false });
    onTestFinished(() => database.close());
    await migrate(database, indexerMigrations);
    for (const id of ["whk_a", "whk_b"])
      await sql`
        insert into indexer_outbox_endpoints (id, url, secrets, is_enabled, created_at)
        values (${id}, 'https://example.com/…', '[]', 1, 0)
      `.execute(database.kysely);
    return database;
  }

  it("are 100,000 for a receiver, and not one more: all of a call, or none", async () => {
    const webhooks = indexerWebhooks(await openTest());
    expect(await webhooks.watch("a", range(1, maxWatched - 1))).toBe(maxWatched - 1);
    const [first = "", second = ""] = range(10 ** 12, 2);
    await expect(webhooks.watch("a", [first, second])).rejects.toThrow(/at most 100000/);
    expect(
      await webhooks.watch("a", [
        first,
        range(1, 1)[0] ?? "",
        first.toUpperCase().replace("0X", "0x"),
      ]),
    ).toBe(1);
    expect(await webhooks.watch("b", [second])).toBe(1);
    expect((await webhooks.list()).map(({ watched }) => watched)).toEqual([maxWatched, 1]);
    expect(await webhooks.unwatch("a", [first, second])).toBe(1);
    const page = await webhooks.addresses("a", { limit: 2 });
    expect(page).toEqual(range(1, 2));
    expect(await webhooks.addresses("whk_a", { after: page[1], limit: 1 })).toEqual(
      range(1, 3).slice(2),
    );
  });

  it("are of a receiver that exists, and addresses", async () => {
    const webhooks = indexerWebhooks(await openTest());
    await expect(webhooks.watch("typo", [addressOf(1)])).rejects.toThrow(
      /no receiver "typo".*whk_a, whk_b/,
    );
    await expect(webhooks.watch("a", [addressOf(1), "0x12"])).rejects.toThrow(
      /Not an address: "0x12"/,
    );
    expect(await webhooks.addresses("a")).toEqual([]);
  });

  it("cost a block its own addresses, however many are watched", async () => {
    const database = await openTest();
    const outbox = indexerOutbox(database);
    for (const endpoint of ["whk_a", "whk_b"])
      await changeWatched(outbox, { endpoint, add: range(1, maxWatched) });
    const wanted = [...range(1, 5), addressOf(2), addressOf(3)];
    const { dialect } = database;
    const queries: CompiledQuery[] = [];
    const found = await database.transaction((transaction) =>
      findWatchers(
        transaction.withPlugin({
          transformQuery({ node, queryId }) {
            queries.push(database.kysely.getExecutor().compileQuery(node, queryId));
            return node;
          },
          transformResult: async ({ result }) => result,
        }),
        dialect,
        wanted,
      ),
    );
    expect([...found.keys()].sort()).toEqual(range(1, 5).sort());
    expect(found.get(addressOf(1))).toEqual(["whk_a", "whk_b"]);
    expect(queries).toHaveLength(1);
    const [query] = queries;
    const explain =
      engine === "sqlite" ? "explain query plan" : "explain (analyze, timing off, format json)";
    const { rows } = await database.kysely.executeQuery<Record<string, unknown>>(
      CompiledQuery.raw(`${explain} ${query?.sql}`, [...(query?.parameters ?? [])]),
    );
    if (engine === "sqlite") {
      const plan = rows.map(({ detail }) => detail);
      expect(plan).toContainEqual(
        expect.stringMatching(/^SEARCH found USING PRIMARY KEY \(address=\?\)/),
      );
      expect(plan.filter((step) => /SCAN (?!json_each)/.test(String(step)))).toEqual([]);
      return;
    }
    const read = readsOf(rows[0]?.["QUERY PLAN"]);
    // Seven probes, and two rows of each of the five that are watched.
    expect(read).toEqual({ loops: wanted.length, rows: 10 });
  });
});

/** Probes of the table of watched addresses, and the rows that they have read. */
function readsOf(plan: unknown): { loops: number; rows: number } {
  const nodes: Record<string, unknown>[] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if (Reflect.get(value, "Relation Name") === "indexer_watched") nodes.push({ ...value });
    for (const each of Object.values(value)) walk(each);
  };
  walk(typeof plan === "string" ? JSON.parse(plan) : plan);
  expect(nodes).toHaveLength(1);
  expect(nodes[0]?.["Node Type"]).toMatch(/^(Index|Index Only|Bitmap Heap) Scan$/);
  const loops = Number(nodes[0]?.["Actual Loops"]);
  // An average, rounded.
  const removed = Number(nodes[0]?.["Rows Removed by Filter"] ?? 0);
  expect(removed).toBe(0);
  return { loops, rows: 2 * Math.round((Number(nodes[0]?.["Actual Rows"]) * loops) / 2) };
}
