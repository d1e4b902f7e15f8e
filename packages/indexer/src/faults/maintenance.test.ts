import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { effort } from "@coinslot/devnet/effort";
import { useProgram } from "@coinslot/devnet/use-program";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import type { Indexer } from "../indexer.ts";
import type { MaintenanceWish } from "../maintenance/run-maintenance.ts";
import { hexOfBytes } from "../store/bytes.ts";
import { readCoverage } from "../store/coverage.ts";
import { addRequest } from "../store/requests.ts";
import { enginesByDay } from "../testing/engines.ts";
import { honest, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { maintain, type UsedChain, waitUntilDone } from "../testing/maintenance-scene.ts";
import { expectExact, expectVerified, readStored } from "../testing/oracle.ts";
import { startIndexer, startUsedChain, stepRandomly, usdtOf } from "../testing/scene.ts";
import { randomOf } from "../testing/seeded-random.ts";

const program = useProgram(new URL("../testing/indexer-program.ts", import.meta.url));

describe.each(enginesByDay)("maintenance under attack, on $engine", ({ engine, createUrl }) => {
  it(
    "repairs and rewinds each block once, with balances, events and coverage, through any number of kills",
    async () => {
      const random = randomOf(`SIGKILL inside a mend on ${engine}`);
      const devnet = await startUsedChain(20);
      const database = await createUrl();
      const rpcUrls = [devnet.rpcUrl];
      const first = await startIndexer({ rpcUrls, database });
      await expectExact(first, devnet, usdtOf(devnet));
      // Announced to readers of events, since they come after the beginning.
      const { others } = devnet.accounts;
      for (let index = 0; index < 30; index++)
        await devnet.mint({ to: others[index % 3]?.address ?? devnet.token, amount: 5n });
      await devnet.mine(finalDepth);
      await expectVerified(first, devnet, usdtOf(devnet), finalDepth);
      await first.close();

      const reader = openReader(devnet, database);
      const { kysely, dialect } = await reader.database();
      const { chain_id: chainId } = await kysely
        .selectFrom("indexer_chains")
        .select("chain_id")
        .executeTakeFirstOrThrow();
      const announced = await readEventCounts(reader);
      const deletions = new Map<string, number>();
      for (let kill = 0; kill < 6 * effort; kill++) {
        for (const { key, position } of await readRows(reader)) {
          if (!random.chance(0.4)) continue;
          const { numDeletedRows } = await kysely
            .deleteFrom("indexer_transfers")
            .where("position", "=", position)
            .executeTakeFirstOrThrow();
          // The last transaction of a killed process may have taken it back first.
          if (numDeletedRows === 1n) deletions.set(key, (deletions.get(key) ?? 0) + 1);
        }
        const head = Number(await devnet.client.getBlockNumber());
        const from = head - random.between(5, 25);
        const id = await addRequest(kysely, dialect, {
          chainId,
          ...(random.chance(0.3) ? { kind: "rewind", from } : { kind: "verify", from: 0 }),
        });
        const { child, exited } = startProgram(devnet, database);
        await once(child, "message");
        // Half of the kills come when the request was taken up, so that its mends are under way.
        if (random.chance(0.5)) await waitUntilDone(reader, id);
        await pause(random.between(0, 400));
        child.kill("SIGKILL");
        expect((await exited)[1]).toBe("SIGKILL");
        await expectWhole(reader);
      }
      // A row that is gone from a verified block below a rewind is missed by a second reading
      // alone.
      const id = await addRequest(kysely, dialect, { chainId, kind: "verify", from: 0 });
      const last = await startIndexer({ rpcUrls, database });
      await waitUntilDone(reader, id);
      await reader.close();

      await expectVerified(last, devnet, usdtOf(devnet), finalDepth);
      await expectExact(last, devnet, usdtOf(devnet));
      // A repair retracts the stored rows, and announces the true ones; a rewind does so in two
      // steps. So a deleted row is announced once more, and never twice.
      const counts = await readEventCounts(last);
      const expected = [...announced].map(([key, count]) => [
        key,
        count + (deletions.get(key) ?? 0),
      ]);
      expect([...counts].sort()).toEqual(expected.sort());
      expect(announced.size).toBeGreaterThan(20);
    },
    150_000 * effort,
  );

  it(
    "leaves neither a gap nor a duplicate when it is killed while blocks are deleted and read again",
    async () => {
      const random = randomOf(`SIGKILL inside a reindex on ${engine}`);
      const devnet = await startUsedChain(40);
      const database = await createUrl();
      const first = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
      await expectVerified(first, devnet, usdtOf(devnet), finalDepth);
      await first.close();
      const reader = openReader(devnet, database);
      const { kysely, dialect } = await reader.database();
      const { chain_id: chainId } = await kysely
        .selectFrom("indexer_chains")
        .select("chain_id")
        .executeTakeFirstOrThrow();
      for (let kill = 0; kill < 4 * effort; kill++) {
        const from = random.between(0, 30);
        const next = random.chance(0.5) ? from + random.between(1, 30) : undefined;
        await addRequest(kysely, dialect, { chainId, kind: "reindex", from, next });
        const { child, exited } = startProgram(devnet, database);
        await once(child, "message");
        await stepRandomly(devnet, random);
        await pause(random.between(0, 300));
        child.kill("SIGKILL");
        expect((await exited)[1]).toBe("SIGKILL");
        await expectWhole(reader);
      }
      const last = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
      await expectExact(last, devnet, usdtOf(devnet));
      await devnet.mine(finalDepth);
      await expectVerified(last, devnet, usdtOf(devnet), finalDepth);
      expect((await last.status()).chains[0]?.repairedBlocks).toBe(0);
    },
    120_000 * effort,
  );

  it("serves several processes' requests on one database one at a time, while blocks come and are replaced", async () => {
    const random = randomOf(`requests at once on ${engine}`);
    const devnet = await startUsedChain(30);
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(service, devnet, usdtOf(devnet), finalDepth);
    // Without a service, the process that takes the lease works for all, and another continues
    // after it.
    await service.close();
    let isOver = false;
    const growing = (async () => {
      while (!isOver) {
        await stepRandomly(devnet, random);
        await pause(20);
      }
    })();
    const wishes: (Partial<MaintenanceWish> & Pick<MaintenanceWish, "kind">)[] = [
      { kind: "verify" },
      { kind: "reindex", from: 5, to: 25 },
      { kind: "verify", token: "usdt" },
      { kind: "reindex" },
    ];
    const done = await Promise.all(wishes.map((wish) => maintain(devnet.rpcUrl, database, wish)));
    isOver = true;
    await growing;
    expect(done.map(({ phase, share }) => [phase, share])).toEqual(wishes.map(() => ["done", 1]));
    const next = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(next, devnet, usdtOf(devnet));
    await expectWhole(next);
    await devnet.mine(finalDepth);
    await expectVerified(next, devnet, usdtOf(devnet), finalDepth);
  });

  it("undoes replaced final blocks also while blocks are being reindexed", async () => {
    const devnet = await startUsedChain(40);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const database = await createUrl();
    const before = await startIndexer({ rpcUrls: [proxy.url], database });
    await expectVerified(before, devnet, usdtOf(devnet), finalDepth);
    await before.close();
    const service = await startIndexer({
      rpcUrls: [proxy.url],
      database,
      chain: { maxBlocksPerRequest: 2, requestsInFlight: 1, verifyAfterMs: 2_000 },
    });
    await expectExact(service, devnet, usdtOf(devnet));
    const head = Number(await devnet.client.getBlockNumber());
    proxy.set(async ({ calls, forward, reply }) => {
      // Slow enough for a reorganisation in the middle.
      if (calls.some(({ method }) => method === "eth_getLogs")) await pause(100);
      reply(await forward());
    });
    const { kysely, dialect } = await service.database();
    const chainId = (await service.status()).chains[0]?.chainId ?? 0;
    await addRequest(kysely, dialect, { chainId, kind: "reindex", from: 0 });
    const readBlocks = async () =>
      (await readStored(service, usdtOf(devnet))).filter(({ blockNumber }) => blockNumber < 20);
    await expect.poll(readBlocks, { timeout: 20_000, interval: 5 }).toEqual([]);
    await expect
      .poll(async () => (await readBlocks()).length, { timeout: 20_000, interval: 5 })
      .toBeGreaterThan(3);
    await devnet.reorg({ depth: head - 15 });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 5n });
    const doubtedFrom = async () => (await service.status()).chains[0]?.doubtedFrom;
    await expect.poll(doubtedFrom, { timeout: 20_000, interval: 5 }).toBeDefined();
    const count = (part: string) =>
      proxy.requests.filter((calls) => JSON.stringify(calls).includes(part)).length;
    const earlier = { ranges: count("fromBlock"), looks: count('"latest"') };
    await expect
      .poll(() => count('"latest"') - earlier.looks, { timeout: 20_000 })
      .toBeGreaterThanOrEqual(2);
    // Nothing of the new chain is read among the blocks of the old one.
    expect(count("fromBlock") - earlier.ranges).toBeLessThanOrEqual(1);
    proxy.set(honest);
    await expectExact(service, devnet, usdtOf(devnet));
    await expectVerified(service, devnet, usdtOf(devnet), finalDepth);
  });
});

/** An indexer that reads for the second time at once. */
function startProgram(devnet: UsedChain, database: string) {
  const child = fork(program(), [devnet.rpcUrl, database, "20"], { execArgv: [] });
  return { child, exited: once(child, "exit") };
}

/** Reads beside processes that write. */
function openReader(devnet: UsedChain, database: string): Indexer {
  const reader = createIndexer({ chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })], database });
  onTestFinished(() => reader.close());
  return reader;
}

/** The stored transfers of announced blocks, by what makes each of them one. */
async function readRows(indexer: Indexer) {
  const { kysely } = await indexer.database();
  const { announced_from } = await kysely
    .selectFrom("indexer_chains")
    .select("announced_from")
    .executeTakeFirstOrThrow();
  const rows = await kysely
    .selectFrom("indexer_transfers")
    .selectAll()
    .where("position", ">=", (announced_from ?? 0) * 2 ** 21)
    .execute();
  return rows.map((row) => ({ key: keyOf(row), position: row.position }));
}

/** Announcements of each transfer, less its retractions. */
async function readEventCounts(indexer: Indexer): Promise<Map<string, number>> {
  const { kysely } = await indexer.database();
  const counts = new Map<string, number>();
  for (const row of await kysely.selectFrom("indexer_events").selectAll().execute()) {
    const key = keyOf(row);
    counts.set(key, (counts.get(key) ?? 0) + (row.kind === "transfer" ? 1 : -1));
  }
  return counts;
}

function keyOf(row: { position: number; transaction_hash: Uint8Array }): string {
  return `${row.position} ${hexOfBytes(row.transaction_hash)}`;
}

/** A verified block is indexed, and every transfer has its block. */
async function expectWhole(indexer: Indexer): Promise<void> {
  const { kysely } = await indexer.database();
  const tokens = await kysely.selectFrom("indexer_tokens").select("id").execute();
  const indexed = await readCoverage(kysely, tokens);
  for (const [id, ranges] of await readCoverage(kysely, tokens, "indexer_verified_ranges"))
    for (const range of ranges)
      expect(indexed.get(id)).toContainEqual(
        expect.toSatisfy(
          ({ from, next }: typeof range) => from <= range.from && range.next <= next,
        ),
      );
  const rows = await kysely.selectFrom("indexer_transfers").select("position").execute();
  const blocks = await kysely.selectFrom("indexer_blocks").select("number").execute();
  const numbers = new Set(blocks.map(({ number }) => number));
  expect(rows.filter(({ position }) => !numbers.has(Math.floor(position / 2 ** 21)))).toEqual([]);
}
