import { randomUUID } from "node:crypto";
import { systemClock } from "@coinslot/chain";
import { createLeases } from "@coinslot/storage";
import { sql } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import { createEventSignal } from "../event-signal.ts";
import { silentLogger } from "../logger.ts";
import { updateChain } from "../store/chain-row.ts";
import { coverRange } from "../store/coverage.ts";
import { createWriterLease, type WriterLease } from "../store/writer-lease.ts";
import { engines } from "../testing/engines.ts";
import { chainId, openIndex, other, watched } from "../testing/index-by-hand.ts";
import { anyBlocks, type SilentBlocks } from "./find-returned.ts";
import { startWebhooks } from "./start-webhooks.ts";
import { tellFinal, writeAndTell } from "./tell-final.ts";

const sent = 2_300;
const [sqlite] = engines;

it("posts events of finality for any number of transfers, 1,000 in a transaction", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const { database, include, watch } = await openIndex(await sqlite.createUrl());
  const { dialect, kysely } = database;
  await watch();
  const transfers = Array.from({ length: sent }, (_, log) => ({ transaction: `${log}`, log }));
  await include(1, "1", transfers);
  const writer = await takeLease(database);
  const posted: number[] = [];
  const counted: WriterLease = {
    ...writer,
    write: async (work) => {
      const result = await writer.write(work);
      const { rows } = await sql<{ count: number }>`
        select count(*) as count from indexer_outbox_events where type = 'transfer.final'
      `.execute(kysely);
      posted.push(Number(rows[0]?.count));
      return result;
    },
  };

  const result = await writeAndTell({ chainId, database, lease: counted }, async (transaction) => {
    await coverRange(transaction, 1, { from: 1, next: 2 }, "indexer_verified_ranges");
    const head = { number: 1, timestampMs: 1_000, finalized: 1 };
    await updateChain(transaction, dialect, { chainId, news: { head, isProgress: true } });
    return "written";
  });
  expect(result).toBe("written");
  expect(posted).toEqual([1_000, 2_000, sent]);
});

it("looks for transfers that have returned once more, where a page after their block has failed", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const { database, include, watch, rollBackTo, eventsOf } = await openIndex(
    await sqlite.createUrl(),
  );
  const { dialect } = database;
  await watch();
  await include(2, "2", [{ transaction: "back" }]);
  await rollBackTo(1);
  const transfers = Array.from({ length: sent }, (_, log) => ({ transaction: `${log}`, log }));
  await include(1, "1", transfers);
  await include(2, "3", [{ transaction: "back" }], false);
  const lease = await takeLease(database);
  let writes = 0;
  const failing: WriterLease = {
    ...lease,
    write: (work) =>
      ++writes === 2 ? Promise.reject(new Error("The database is away")) : lease.write(work),
  };
  const silent = { tokenIds: [1], range: { from: 1, next: 3 } };
  const written = writeAndTell({ chainId, database, lease: failing, silent }, async (tx) => {
    await coverRange(tx, 1, silent.range, "indexer_verified_ranges");
    const head = { number: 2, timestampMs: 1_000, finalized: 2 };
    await updateChain(tx, dialect, { chainId, news: { head, isProgress: true } });
  });
  await expect(written).rejects.toThrow("The database is away");
  await writeAndTell({ chainId, database, lease: failing }, async () => undefined);
  const events = (await eventsOf()).filter((each) => each.includes(" back "));
  expect(events).toEqual(["included back 2", "reverted back 2", "included back 3", "final back 3"]);
});

it("looks through reverted transfers in transactions of 1,000", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const { database, include, watch, rollBackTo, eventsOf } = await openIndex(
    await sqlite.createUrl(),
  );
  const { dialect } = database;
  await watch();
  const transfers = Array.from({ length: sent }, (_, log) => ({ transaction: `${log}`, log }));
  await include(1, "1", transfers);
  await rollBackTo(0);
  await include(1, "2", transfers.slice(-1), false);
  await database.transaction(async (tx) => {
    await coverRange(tx, 1, { from: 1, next: 2 }, "indexer_verified_ranges");
    const head = { number: 1, timestampMs: 1_000, finalized: 1 };
    await updateChain(tx, dialect, { chainId, news: { head, isProgress: true } });
  });
  const lease = await takeLease(database);
  let writes = 0;
  const counted: WriterLease = {
    ...lease,
    write: (work) => {
      writes += 1;
      return lease.write(work);
    },
  };
  await writeAndTell(
    { chainId, database, lease: counted, silent: anyBlocks },
    async () => undefined,
  );
  const events = await eventsOf();
  expect(events.slice(2 * sent)).toEqual([`included ${sent - 1} 2`, `final ${sent - 1} 2`]);
  expect(writes).toBeGreaterThan(2);
});

async function takeLease(database: Awaited<ReturnType<typeof openIndex>>["database"]) {
  const leases = createLeases({ database });
  const lease = await leases.acquire({ name: "writer", owner: randomUUID(), ttlMs: 60_000 });
  if (lease === undefined) throw new Error("Another process is the writer");
  return createWriterLease(database, { leases, lease });
}

it("posts those of one transaction together, where a page would end within it", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const index = await openIndex(await sqlite.createUrl());
  await index.watch("whk_a", [watched, other]);
  const before = Array.from({ length: 999 }, (_, log) => ({ transaction: `${log}`, log }));
  const first = { transaction: "moved", log: 999 };
  await index.include(1, "1", [...before, first, { ...first, log: 1_000, to: other }]);
  await index.finalise(1);
  await index.forget(1);
  // The first one was read at a wrong place, so the other one has its index.
  const found = [...before, { ...first, log: 1_000, to: other }, { ...first, log: 1_001 }];
  await index.include(1, "1", found, false);
  await index.verify(1);
  const events = (await index.eventsOf("whk_a", { hasKey: true })).filter((each) =>
    each.includes(" moved "),
  );
  for (const place of ["0", "1"]) {
    const ofPlace = events.filter((each) => each.endsWith(`:${place}`));
    expect(ofPlace.map((each) => each.split(" ")[0])).toEqual([
      "included",
      "reverted",
      "included",
      "final",
    ]);
  }
});

it("searches for reverted transfers only where blocks may have come without announcement", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const { database, include, watch, rollBackTo } = await openIndex(await sqlite.createUrl());
  const { dialect, kysely } = database;
  await watch();
  await include(1, "1", [{ transaction: "a" }]);
  await rollBackTo(0);
  const searches = async (silent?: SilentBlocks) => {
    const queries: string[] = [];
    await database.transaction((transaction) => {
      const recorded = transaction.withPlugin({
        transformQuery({ node, queryId }) {
          queries.push(kysely.getExecutor().compileQuery(node, queryId).sql);
          return node;
        },
        transformResult: async ({ result }) => result,
      });
      return tellFinal(recorded, dialect, { chainId, silent });
    });
    expect(queries).not.toEqual([]);
    return queries.filter((query) => query.includes("indexer_reverted")).length;
  };
  expect(await searches()).toBe(0);
  expect(await searches(anyBlocks)).toBeGreaterThan(0);
  expect(await searches({ tokenIds: [1], range: { from: 0, next: 5 } })).toBeGreaterThan(0);
});

it("forgets old final transfers at a process without receivers", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const index = await openIndex(await sqlite.createUrl());
  const { kysely } = index.database;
  await index.watch();
  await index.include(1, "1", [{ transaction: "a" }]);
  await index.include(2, "2", [{ transaction: "b" }]);
  await index.verify(1);
  await index.finalise(1);
  await kysely
    .updateTable("indexer_told")
    .set({ final_at_ms: 1 })
    .where("final_at_ms", "is not", null)
    .execute();
  const webhooks = await startWebhooks({
    database: index.database,
    receivers: undefined,
    events: createEventSignal(),
    clock: systemClock,
    now: Date.now,
    logger: silentLogger,
    onWebhook: () => undefined,
  });
  onTestFinished(() => webhooks.stop());
  const told = () => kysely.selectFrom("indexer_told").select("block_number").execute();
  await expect.poll(told, { timeout: 20_000 }).toEqual([{ block_number: 2 }]);
});
