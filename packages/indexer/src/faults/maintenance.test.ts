import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { useProgram } from "@coinslot/devnet/use-program";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import type { Indexer } from "../indexer.ts";
import { silentLogger } from "../logger.ts";
import { type MaintenanceWish, runMaintenance } from "../maintenance/run-maintenance.ts";
import { hexOfBytes } from "../store/bytes.ts";
import { readCoverage } from "../store/coverage.ts";
import { addRequest } from "../store/requests.ts";
import { engines } from "../testing/engines.ts";
import { type Fault, type FaultProxy, honest, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified, readStored } from "../testing/oracle.ts";
import {
  startFastIndexer,
  startFork,
  startIndexer,
  startUsedChain,
  stepRandomly,
  usdtOf,
} from "../testing/scene.ts";
import { effort, randomOf } from "../testing/seeded-random.ts";

type UsedChain = Awaited<ReturnType<typeof startUsedChain>>;

const program = useProgram(new URL("../testing/indexer-program.ts", import.meta.url));

describe.each(engines)("maintenance under attack, on $engine", ({ engine, createUrl }) => {
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
      // A row that is gone from a verified block below a rewind is missed by a second reading alone.
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

/** A node that answers for no range. */
const withoutRanges: Fault = async ({ calls, forward, reply, response }) => {
  if (JSON.stringify(calls).includes("fromBlock")) response.destroy();
  else reply(await forward());
};

describe.each(engines)("events beside a reindex, on $engine", ({ createUrl }) => {
  it("announce blocks that come during a reindex, where the newest block is final", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    let isHeld = false;
    const isFinalAtOnce: Fault = async ({ calls, forward, reply, response }) => {
      if (isHeld && JSON.stringify(calls).includes("fromBlock")) return void response.destroy();
      const answers = await forward();
      const latest = answers[calls.findIndex(({ params }) => params[0] === "latest")];
      const isFinal = (id: number) =>
        calls.some((call) => call.id === id && call.params[0] === "finalized");
      reply(answers.map((answer) => (isFinal(answer.id) ? { ...latest, id: answer.id } : answer)));
    };
    proxy.set(isFinalAtOnce);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { finality: { finalizedTag: true } },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const seller = devnet.accounts.seller.address;
    await devnet.mint({ to: seller, amount: 1n });
    await expectExact(indexer, devnet, usdtOf(devnet));
    isHeld = true;
    await reindexAll(indexer);
    for (let amount = 2n; amount <= 5n; amount++) await devnet.mint({ to: seller, amount });
    const head = Number(await devnet.client.getBlockNumber());
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.finalized, { timeout: 20_000 })
      .toBe(head);
    isHeld = false;
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await readAnnounced(indexer, devnet)).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  it("announce nothing twice when the chain falls behind during a reindex", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    await reindexAll(indexer);
    await fallBehind({ devnet, proxy });
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await readAnnounced(indexer, devnet)).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  it("announce nothing twice when a reindex comes after the chain has fallen behind", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    await fallBehind({ devnet, proxy });
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.state, { timeout: 20_000 })
      .toBe("history");
    await reindexAll(indexer);
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await readAnnounced(indexer, devnet)).toEqual([1n, 2n, 3n, 4n, 5n]);
  });

  it("lead a reader to the chain's transfers where a rewind comes before blocks are read anew", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    const reader = await startReader(indexer, devnet);
    await reindexAll(indexer);
    // Some of the missing blocks are above it, some below.
    await rewind(indexer, Number(await devnet.client.getBlockNumber()) - finalDepth - 1);
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.faults).toEqual([]);
    expect(reader.amounts()).toEqual([1n, 2n, 3n, 4n]);
  });

  it("lead a reader to transfers that were never announced, where a rewind comes before they are read anew", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    const reader = await startReader(indexer, devnet, devnet.accounts.others[0]);
    const amounts = reader.amounts();
    expect(amounts.length).toBeGreaterThan(3);
    proxy.set(withoutRanges);
    await reindexAll(indexer);
    await rewind(indexer, Number(await devnet.client.getBlockNumber()) - finalDepth - 1);
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.faults).toEqual([]);
    expect(reader.amounts()).toEqual(amounts);
  });

  it("leave a reader at its place where a rewind comes above all blocks that are missing", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    const reader = await startReader(indexer, devnet);
    await reindexAll(indexer);
    await rewind(indexer, Number(await devnet.client.getBlockNumber()));
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.amounts()).toEqual([1n, 2n, 3n, 4n]);
    expect(reader).toMatchObject({ faults: [], gaps: [] });
  });

  it("leave a reader at its place where blocks are missing of a token that is not configured", async () => {
    const { devnet, proxy, indexer } = await startWithoutRanges();
    const reader = await startReader(indexer, devnet);
    const { kysely } = await indexer.database();
    const chain_id = (await indexer.status()).chains[0]?.chainId ?? 0;
    const { id } = await kysely
      .insertInto("indexer_tokens")
      .values({ chain_id, address: new Uint8Array(20), name: "old", opens_at_zero: 0, revision: 0 })
      .returning("id")
      .executeTakeFirstOrThrow();
    const head = Number(await devnet.client.getBlockNumber());
    await kysely
      .insertInto("indexer_ranges")
      .values({ token_id: id, from_block: 2, next_block: head })
      .execute();
    await rewind(indexer, head - finalDepth - 1);
    await reader.read();
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await reader.read();
    expect(reader.amounts()).toEqual([1n, 2n, 3n, 4n]);
    expect(reader).toMatchObject({ faults: [], gaps: [] });
  });

  async function rewind(indexer: Indexer, from: number): Promise<void> {
    const { kysely, dialect } = await indexer.database();
    const chainId = (await indexer.status()).chains[0]?.chainId ?? 0;
    const id = await addRequest(kysely, dialect, { chainId, kind: "rewind", from });
    await waitUntilDone(indexer, id);
  }

  /** A reader of an account's history that follows its events, and reads anew after a gap. */
  async function startReader(
    indexer: Indexer,
    devnet: UsedChain,
    { address } = devnet.accounts.seller,
  ) {
    const owner = {
      ...usdtOf(devnet),
      address: `0x${address.slice(2).toLowerCase()}` as const,
    };
    const known = new Map<string, bigint>();
    const faults: string[] = [];
    const gaps: number[] = [];
    const keyOfTransfer = (each: { blockHash: string; logIndex: number }) =>
      `${each.blockHash} ${each.logIndex}`;
    async function readHistory() {
      known.clear();
      const page = { ...owner, fromMs: 0, sort: "asc", limit: 100 } as const;
      for (const transfer of await indexer.readTransfers(page))
        known.set(keyOfTransfer(transfer), transfer.amount);
    }
    let place = await indexer.readLastEventId();
    await readHistory();
    return {
      faults,
      gaps,
      amounts: () => [...known.values()].sort(),
      async read() {
        const page = await indexer.readEvents({ ...owner, after: place, limit: 100 });
        place = page.lastId;
        if (page.isIncomplete) {
          gaps.push(place);
          return readHistory();
        }
        for (const { type, transfer } of page.events) {
          const key = keyOfTransfer(transfer);
          const isNew = type === "transfer";
          if (known.has(key) === isNew) faults.push(`${type} of ${transfer.amount}`);
          if (isNew) known.set(key, transfer.amount);
          else known.delete(key);
        }
      },
    };
  }

  /** A service that announced four final transfers. Its node answers for no range any more. */
  async function startWithoutRanges() {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const to = devnet.accounts.seller.address;
    for (let amount = 1n; amount <= 4n; amount++) await devnet.mint({ to, amount });
    await devnet.mine(finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.set(withoutRanges);
    return { devnet, proxy, indexer };
  }

  /** A fifth transfer, and more blocks than live would read, come while the node is away. */
  async function fallBehind({ devnet, proxy }: { devnet: UsedChain; proxy: FaultProxy }) {
    proxy.cut();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 5n });
    await devnet.mine(200);
    proxy.mend();
  }

  /** Resolves when all blocks that are final are forgotten. */
  async function reindexAll(indexer: Indexer): Promise<void> {
    const { kysely, dialect } = await indexer.database();
    const chainId = (await indexer.status()).chains[0]?.chainId ?? 0;
    await waitUntilDone(
      indexer,
      await addRequest(kysely, dialect, { chainId, kind: "reindex", from: 0 }),
    );
  }

  /** The amounts that the seller was announced, those of retractions negative. */
  async function readAnnounced(indexer: Indexer, devnet: UsedChain): Promise<bigint[]> {
    const address = devnet.accounts.seller.address.toLowerCase();
    const question = { ...usdtOf(devnet), after: 0, limit: 100 };
    const { events } = await indexer.readEvents({ ...question, address: `0x${address.slice(2)}` });
    return events.map(({ type, transfer: { amount } }) => (type === "transfer" ? amount : -amount));
  }
});

describe.each(engines)("a gap below the window, on $engine", ({ createUrl }) => {
  it("that no endpoint answers for delays a request by some seconds at most", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const service = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(service, devnet, usdtOf(devnet));
    proxy.set(async ({ calls, forward, reply, response }) => {
      if (JSON.stringify(calls).includes("fromBlock")) response.destroy();
      else reply(await forward());
    });
    const ranges = () =>
      proxy.requests.filter((calls) => JSON.stringify(calls).includes("fromBlock")).length;
    const before = ranges();
    const { kysely, dialect } = await service.database();
    const { chain_id: chainId, finalized_number } = await kysely
      .selectFrom("indexer_chains")
      .select(["chain_id", "finalized_number"])
      .executeTakeFirstOrThrow();
    const next = Number(finalized_number) - 5;
    await kysely.updateTable("indexer_ranges").set({ next_block: next }).execute();
    await kysely
      .deleteFrom("indexer_transfers")
      .where("position", ">=", next * 2 ** 21)
      .execute();
    await expect.poll(ranges, { timeout: 20_000 }).toBeGreaterThan(before);
    const id = await addRequest(kysely, dialect, { chainId, kind: "reindex", from: 0 });
    const readRequest = () =>
      kysely
        .selectFrom("indexer_requests")
        .select("done_at_ms")
        .where("id", "=", id)
        .executeTakeFirst();
    await expect.poll(readRequest, { timeout: 20_000 }).not.toMatchObject({ done_at_ms: null });
    proxy.set(async ({ forward, reply }) => reply(await forward()));
    await expectExact(service, devnet, usdtOf(devnet));
  });
});

describe.each(engines)("a round of history, on $engine", ({ createUrl }) => {
  it("delays a request by some seconds at most", async () => {
    const { devnet, proxy, service, database } = await startSlowHistory();
    const stopping = new AbortController();
    const taken = maintain(
      proxy.url,
      database,
      { kind: "verify" },
      stopping.signal,
      ({ phase }) => {
        if (phase !== "waiting") stopping.abort(new Error("It was taken up"));
      },
    );
    await expect(taken).rejects.toThrow("It was taken up");
    // History takes longer than any request may.
    expect((await service.status()).chains[0]?.state).toBe("history");
    proxy.set(async ({ forward, reply }) => reply(await forward()));
    await expectExact(service, devnet, usdtOf(devnet));
  });

  it("is abandoned when blocks that it wrote are replaced, and those are undone", async () => {
    const { devnet, proxy, service } = await startSlowHistory();
    const stored = await readStored(service, usdtOf(devnet));
    const head = Number(await devnet.client.getBlockNumber());
    const fork = await startFork(devnet, 6n);
    await fork.mint({ to: devnet.accounts.seller.address, amount: 5n });
    await fork.mine(head);
    proxy.setUpstream(fork.rpcUrl);
    const problem = async () => (await service.status()).chains[0]?.problem ?? "";
    await expect.poll(problem, { timeout: 20_000 }).toMatch(/was final as/);
    expect(stored.at(-1)?.blockNumber).toBeGreaterThan(6);
    proxy.set(async ({ forward, reply }) => reply(await forward()));
    await expectExact(service, fork, usdtOf(fork));
    expect((await service.status()).chains[0]).toMatchObject({
      repairedBlocks: 0,
      doubtedFrom: undefined,
    });
  });

  /** A service in the middle of a history that takes 20 s. */
  async function startSlowHistory() {
    const devnet = await startUsedChain(60);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(async ({ calls, forward, reply }) => {
      if (calls.some(({ method }) => method === "eth_getLogs")) await pause(300);
      reply(await forward());
    });
    const database = await createUrl();
    const service = await startIndexer({
      rpcUrls: [proxy.url],
      database,
      chain: { maxBlocksPerRequest: 1, requestsInFlight: 1, verifyAfterMs: 1_000 },
    });
    await expect
      .poll(async () => (await readStored(service, usdtOf(devnet))).at(-1)?.blockNumber ?? 0, {
        timeout: 30_000,
      })
      .toBeGreaterThan(7);
    return { devnet, proxy, service, database };
  }
});

/** An indexer that reads for the second time at once. */
function startProgram(devnet: UsedChain, database: string) {
  const child = fork(program(), [devnet.rpcUrl, database, "20"], { execArgv: [] });
  return { child, exited: once(child, "exit") };
}

async function waitUntilDone(indexer: Indexer, request: number): Promise<void> {
  const { kysely } = await indexer.database();
  const readRequest = () =>
    kysely
      .selectFrom("indexer_requests")
      .select("done_at_ms")
      .where("id", "=", request)
      .executeTakeFirst();
  await expect
    .poll(readRequest, { timeout: 20_000, interval: 5 })
    .not.toMatchObject({ done_at_ms: null });
}

function maintain(
  rpcUrl: string,
  database: string,
  wish: Partial<MaintenanceWish> & Pick<MaintenanceWish, "kind">,
  signal = new AbortController().signal,
  onProgress: Parameters<typeof runMaintenance>[0]["onProgress"] = () => {},
) {
  const chain = devnetChain({
    rpcUrls: [rpcUrl],
    pollIntervalMs: 10,
    verifyAfterMs: 200,
    finality: { depth: finalDepth },
  });
  return runMaintenance({
    configuration: { chains: [chain], database, leaseMs: 600 },
    wish: { chain: "devnet", from: 0, ...wish },
    logger: silentLogger,
    signal,
    onProgress,
  });
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
