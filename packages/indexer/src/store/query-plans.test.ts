import { type Database, migrate, openDatabase } from "@coinslot/storage";
import { CompiledQuery, type KyselyPlugin } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { selectIndexedTransfers } from "../query/indexed-transfers.ts";
import { engines } from "../testing/engines.ts";
import { anyBlocks, findReturned } from "../webhooks/find-returned.ts";
import {
  forgetReverted,
  forgetUnsent,
  readReverted,
  readUnsent,
} from "../webhooks/told-transfers.ts";
import { sumBelow } from "./balance-sums.ts";
import { forgetBlocks } from "./forget-range.ts";
import type { KnownToken } from "./known-token.ts";
import { findKnownBlock } from "./marks.ts";
import { indexerMigrations } from "./migrations/indexer-migrations.ts";
import { logsPerBlock } from "./position.ts";
import {
  findBlockBelow,
  findBlockOfRowBelow,
  findBlockOfTransfer,
  readStored,
} from "./read-stored.ts";
import { readNextRequest } from "./requests.ts";
import { rollBack } from "./roll-back.ts";
import type { IndexerSchema } from "./schema.ts";

const blocks = 20_000;
const chainId = 31_337;
const token: KnownToken = {
  blockchain: "devnet",
  token: "usdt",
  id: 1,
  chainId,
  address: "0x00000000000000000000000000000000000000aa",
  startBlock: 0,
};
const tokens = [token];
/** A scan of these grows with history, by an index or not. */
const growing = ["transfer", "block", "balance", "opening"].map((name) => `indexer_${name}s`);

function bytes(length: number, value: number): Buffer {
  const buffer = Buffer.alloc(length);
  buffer.writeUInt32BE(value, length - 4);
  return buffer;
}

type Work = (database: Database<IndexerSchema>) => Promise<unknown>;

describe.each(engines)("query plans, on $engine", ({ createUrl }) => {
  it.each<[string, Work]>([
    ["the end of a range", (db) => findBlockOfTransfer(db, { token, from: 15_000, count: 500 })],
    ["the transfer below a range", (db) => findBlockBelow(db, { token, below: 15_000 })],
    [
      "the stored rows of a range",
      ({ kysely }) => readStored(kysely, { chainId, tokens, range: { from: 9_000, next: 9_050 } }),
    ],
    [
      "a step back",
      ({ kysely }) => findBlockOfRowBelow(kysely, { tokenIds: [1], below: 9_000, count: 500 }),
    ],
    ["the newest known block", ({ kysely }) => findKnownBlock(kysely, { chainId, number: 9_000 })],
    ["the next request", ({ kysely }) => readNextRequest(kysely, { chainId, isDoubted: false })],
    ["the next in doubt", ({ kysely }) => readNextRequest(kysely, { chainId, isDoubted: true })],
    [
      "the sums of an address",
      async (db) => {
        const { rows } = await readStored(db.kysely, {
          chainId,
          tokens,
          range: { from: 7, next: 8 },
        });
        await sumBelow(db, { tokens, rows, below: 50, signal: new AbortController().signal });
      },
    ],
    [
      "a page of transfers",
      (db) =>
        selectIndexedTransfers(db, token).orderBy("transfer.position", "desc").limit(10).execute(),
    ],
    [
      "the blocks that a reindex deletes",
      ({ transaction }) => transaction((tx) => forgetBlocks(tx, chainId, [9_000, 9_001, 9_002])),
    ],
    [
      "a rollback",
      ({ transaction, dialect }) =>
        transaction((tx) => rollBack(tx, dialect, { chainId, block: blocks - 10 })),
    ],
    [
      "the receivers of reverted transfers",
      ({ transaction, dialect }) =>
        transaction((tx) =>
          readReverted(tx, dialect, [{ token_id: 1, transaction_hash: bytes(32, 9_000) }]),
        ),
    ],
    [
      "the receivers that were not sent a reverted transfer",
      ({ transaction, dialect }) =>
        transaction((tx) =>
          readUnsent(tx, dialect, [{ token_id: 1, transaction_hash: bytes(32, 9_000) }]),
        ),
    ],
    [
      "reverted transfers that are in the chain again",
      ({ transaction, dialect }) =>
        transaction((tx) => findReturned(tx, dialect, { chainId, silent: anyBlocks })),
    ],
    [
      "those of a range",
      ({ transaction, dialect }) => {
        const silent = { tokenIds: [1], range: { from: 9_000, next: 9_050 } };
        return transaction((tx) => findReturned(tx, dialect, { chainId, silent }));
      },
    ],
    [
      "reverted transfers of long ago",
      ({ transaction, dialect }) =>
        transaction((tx) => forgetReverted(tx, dialect, { keptMs: 1_000, limit: 500 })),
    ],
    [
      "unsent transfers of long ago",
      ({ transaction, dialect }) =>
        transaction((tx) => forgetUnsent(tx, dialect, { keptMs: 1_000, limit: 500 })),
    ],
  ])("do not grow with history for %s", async (_, work) => {
    const database = await openFull(await createUrl());
    const { queries, plugin } = record(database);
    await work({
      ...database,
      kysely: database.kysely.withPlugin(plugin),
      transaction: (run) => database.transaction((tx) => run(tx.withPlugin(plugin))),
    });
    expect(queries.length).toBeGreaterThan(0);
    for (const query of queries) {
      const plan = await explain(database, query);
      for (const table of growing)
        expect(plan, query.sql).not.toMatch(scanOf(database, table, query.sql));
    }
  });

  it("report a scan where there is one", async () => {
    const database = await openFull(await createUrl());
    const query = database.kysely
      .selectFrom("indexer_transfers as transfer")
      .select("position")
      .where("transaction_index", "=", 7)
      .compile();
    expect(await explain(database, query)).toMatch(
      scanOf(database, "indexer_transfers", query.sql),
    );
  });
});

/** Records every query in the engine's SQL. */
function record({ kysely }: Database<IndexerSchema>) {
  const queries: CompiledQuery[] = [];
  const plugin: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      queries.push(kysely.getExecutor().compileQuery(node, queryId));
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { queries, plugin };
}

async function explain({ kysely, dialect }: Database<IndexerSchema>, query: CompiledQuery) {
  if (!/^\s*(select|delete|update)/.test(query.sql)) return "";
  const word = dialect.engine === "sqlite" ? "explain query plan" : "explain";
  const raw = CompiledQuery.raw(`${word} ${query.sql}`, [...query.parameters]);
  const { rows } = await kysely.executeQuery<Record<string, unknown>>(raw);
  return rows.map((row) => row.detail ?? row["QUERY PLAN"]).join("\n");
}

/** SQLite names a table by its alias in the question. */
function scanOf({ dialect }: Database<IndexerSchema>, table: string, question: string): RegExp {
  if (dialect.engine === "postgres") return new RegExp(`Seq Scan on ${table}\\b`);
  const alias = new RegExp(`"?${table}"? as "?(\\w+)`).exec(question)?.[1] ?? table;
  return new RegExp(`SCAN ${alias}\\b`);
}

/** A database with a transfer in each block. */
async function openFull(url: string): Promise<Database<IndexerSchema>> {
  const database = await openDatabase<IndexerSchema>({ url, durable: false });
  onTestFinished(() => database.close());
  await migrate(database, indexerMigrations);
  const { kysely, dialect, transaction } = database;
  const numbers = Array.from({ length: blocks }, (_, number) => number);
  await transaction(async (tx) => {
    await tx
      .insertInto("indexer_tokens")
      .values({
        chain_id: chainId,
        address: bytes(20, 170),
        name: "usdt",
        opens_at_zero: 1,
        revision: 0,
      })
      .execute();
    await tx
      .insertInto("indexer_ranges")
      .values({ token_id: 1, from_block: 0, next_block: blocks })
      .execute();
    await dialect.insertMany(
      tx,
      "indexer_blocks",
      numbers.map((number) => ({
        chain_id: chainId,
        number,
        hash: bytes(32, number),
        timestamp_ms: number,
      })),
    );
    await dialect.insertMany(
      tx,
      "indexer_transfers",
      numbers.map((number) => ({
        token_id: 1,
        position: number * logsPerBlock,
        transaction_index: 0,
        transfer_index: 0,
        transaction_hash: bytes(32, number),
        from_address: bytes(20, 1 + (number % 997)),
        to_address: bytes(20, 1 + (number % 991)),
        amount: dialect.amount.encode(1n),
      })),
    );
    for (const table of ["indexer_reverted", "indexer_unsent"] as const)
      await tx
        .insertInto(table)
        .values({
          token_id: 1,
          transaction_hash: bytes(32, 9_000),
          endpoint_id: "whk_a",
          address: `0x${"11".repeat(20)}`,
          reverted_at_ms: 0,
        })
        .execute();
  });
  await kysely.executeQuery(CompiledQuery.raw("analyze"));
  return database;
}
