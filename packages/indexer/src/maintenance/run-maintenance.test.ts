import { setTimeout as pause } from "node:timers/promises";
import { systemClock } from "@coinslot/chain";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { silentLogger } from "../logger.ts";
import { addRequest } from "../store/requests.ts";
import { engines } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, readStored } from "../testing/oracle.ts";
import {
  createFastClock,
  startFork,
  startIndexer,
  startUsedChain,
  usdtOf,
} from "../testing/scene.ts";
import {
  MaintenanceError,
  type MaintenanceProgress,
  type MaintenanceWish,
  runMaintenance,
} from "./run-maintenance.ts";

type UsedChain = Awaited<ReturnType<typeof startUsedChain>>;

describe.each(engines)("maintenance, on $engine", ({ createUrl }) => {
  it("verifies, reindexes and rewinds beside a running service", async () => {
    const devnet = await startUsedChain(30);
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(service, devnet, usdtOf(devnet));
    await expectVerified(service, devnet);
    const run = (wish: Partial<MaintenanceWish> & Pick<MaintenanceWish, "kind">) =>
      maintain(devnet, database, wish);

    // Already verified: the service does not read it again unasked.
    const { kysely } = await service.database();
    const { position } = await kysely
      .selectFrom("indexer_transfers")
      .select("position")
      .orderBy("position")
      .executeTakeFirstOrThrow();
    await kysely.deleteFrom("indexer_transfers").where("position", "=", position).execute();
    expect(await run({ kind: "verify" })).toMatchObject({ phase: "done", repairedBlocks: 1 });
    await expectExact(service, devnet, usdtOf(devnet));

    expect(await run({ kind: "reindex", from: 10, to: 20 })).toMatchObject({ phase: "done" });
    await expectExact(service, devnet, usdtOf(devnet));
    expect(await run({ kind: "reindex", token: "usdt" })).toMatchObject({ phase: "done" });
    await expectExact(service, devnet, usdtOf(devnet));

    expect(await run({ kind: "rewind", from: 15 })).toMatchObject({ phase: "done" });
    await expectExact(service, devnet, usdtOf(devnet));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await expectExact(service, devnet, usdtOf(devnet));
    expect((await service.status()).role).toBe("writer");
  });

  it("takes the writer lease where no service runs, and leaves the rest to the next process when it is stopped", async () => {
    const devnet = await startUsedChain(20);
    const database = await createUrl();
    const before = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(before, devnet);
    await before.close();
    expect(await maintain(devnet, database, { kind: "verify" })).toMatchObject({ phase: "done" });

    const stopping = new AbortController();
    const stopped = maintain(devnet, database, { kind: "rewind", from: 5 }, stopping.signal, () =>
      stopping.abort(new Error("Ctrl-C")),
    );
    await expect(stopped).rejects.toThrow("Ctrl-C");
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    // Until the rewind is done, the service may be exact and lose its newest blocks a moment later.
    const { kysely } = await service.database();
    await expect
      .poll(
        () =>
          kysely
            .selectFrom("indexer_requests")
            .select("id")
            .where("done_at_ms", "is", null)
            .execute(),
        { timeout: 20_000 },
      )
      .toEqual([]);
    await expectExact(service, devnet, usdtOf(devnet));
    expect(await readStored(service, usdtOf(devnet))).not.toEqual([]);
  });

  it("ends on a growing chain with the block that was final at its request", async () => {
    const devnet = await startUsedChain(20);
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(service, devnet);
    const growing = new AbortController();
    const growth = (async () => {
      while (!growing.signal.aborted) {
        await devnet.mine(1);
        await pause(30);
      }
    })();
    try {
      const patience = AbortSignal.timeout(100_000);
      const done = await maintain(devnet, database, { kind: "verify" }, patience);
      expect(done).toMatchObject({ phase: "done", share: 1 });
    } finally {
      growing.abort();
      await growth;
    }
  });

  it("repairs a block's time, and with reindex the balances that differ from their transfers' sum", async () => {
    const devnet = await startUsedChain(20);
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(service, devnet);
    const { kysely, dialect } = await service.database();
    const readTimes = () =>
      kysely
        .selectFrom("indexer_blocks")
        .select(["number", "timestamp_ms"])
        .orderBy("number")
        .execute();
    const times = await readTimes();
    const changeTimes = () =>
      kysely
        .updateTable("indexer_blocks")
        .set({ timestamp_ms: 1_000 })
        .where("number", "in", [times[2]?.number ?? 0, times[7]?.number ?? 0])
        .execute();
    await changeTimes();
    expect(await maintain(devnet, database, { kind: "verify" })).toMatchObject({
      repairedBlocks: 2,
    });
    expect(await readTimes()).toEqual(times);
    await changeTimes();
    expect(await maintain(devnet, database, { kind: "reindex", from: 0 })).toMatchObject({
      repairedBlocks: 0,
    });
    expect(await readTimes()).toEqual(times);

    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await expectExact(service, devnet, usdtOf(devnet));
    await kysely
      .updateTable("indexer_balances")
      .set({ amount: dialect.amount.encode(777n) })
      .execute();
    await maintain(devnet, database, { kind: "reindex" });
    await expectExact(service, devnet, usdtOf(devnet));
  });

  it("refuses unconfigured chains and tokens, and invalid block ranges", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    const service = await startIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectVerified(service, devnet);
    for (const wish of [
      { chain: "moon" },
      { token: "gold" },
      { from: 5, to: 4 },
      { from: 2 ** 53 - 1 },
      { from: 1.5 },
      { from: -1 },
      { from: 10_000 },
    ])
      for (const kind of ["verify", "reindex", "rewind"] as const)
        await expect(maintain(devnet, database, { kind, ...wish })).rejects.toThrow(
          MaintenanceError,
        );
    const { kysely } = await service.database();
    expect(await kysely.selectFrom("indexer_requests").select("id").execute()).toEqual([]);
  });

  it("ends with the reason where the chain is stopped and stays so, and deletes nothing of it", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const database = await createUrl();
    const chain = { maxRewindBlocks: 1 };
    const service = await startIndexer({ rpcUrls: [proxy.url], database, chain });
    await expectVerified(service, devnet);
    const fork = await startFork(devnet, 15n);
    await fork.mine(60);
    proxy.setUpstream(fork.rpcUrl);
    const state = async () => (await service.status()).chains[0]?.state;
    await expect.poll(state, { timeout: 20_000 }).toBe("stopped");
    const steps: MaintenanceProgress[] = [];
    const wayOut = /^devnet is stopped.*was final as.*coinslot indexer rewind/;
    await expect(
      maintain(
        fork,
        database,
        { kind: "verify" },
        AbortSignal.timeout(100_000),
        (progress) => steps.push(progress),
        createFastClock(0),
      ),
    ).rejects.toThrow(wayOut);
    await expect(maintain(fork, database, { kind: "reindex" })).rejects.toThrow(wayOut);
    expect(steps.at(-1)?.problem).toMatch(/was final as/);

    proxy.setUpstream(devnet.rpcUrl);
    const back = await maintain(devnet, database, { kind: "verify" });
    expect(back).toMatchObject({ phase: "done", share: 1 });
  });

  it("deletes nothing while final blocks are in doubt, since a rewind may need them", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const database = await createUrl();
    const chain = { maxRewindBlocks: 1, verifyAfterMs: 3_600_000 };
    const service = await startIndexer({ rpcUrls: [proxy.url], database, chain });
    await expectExact(service, devnet, usdtOf(devnet));
    const fork = await startFork(devnet, 15n);
    await fork.mine(60);
    proxy.setUpstream(fork.rpcUrl);
    const readStatus = async () => (await service.status()).chains[0];
    await expect
      .poll(async () => (await readStatus())?.doubtedFrom, { timeout: 20_000 })
      .toBeDefined();
    expect((await readStatus())?.state).toBe("live");
    await expect(maintain(fork, database, { kind: "reindex" })).rejects.toThrow(
      /^devnet is in doubt.*was final as/,
    );
  });

  it("passes over a waiting reindex while the chain is stopped, for a rewind of later", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const database = await createUrl();
    const chain = { maxRewindBlocks: 1 };
    const service = await startIndexer({ rpcUrls: [proxy.url], database, chain });
    await expectVerified(service, devnet);
    const fork = await startFork(devnet, 15n);
    await fork.mine(60);
    proxy.setUpstream(fork.rpcUrl);
    const state = async () => (await service.status()).chains[0]?.state;
    await expect.poll(state, { timeout: 20_000 }).toBe("stopped");
    const { kysely, dialect } = await service.database();
    const stored = await readStored(service, usdtOf(devnet));
    const { chainId } = devnet;
    const reindex = await addRequest(kysely, dialect, { chainId, kind: "reindex", from: 0 });
    const polls = proxy.requests.length;
    await expect.poll(() => proxy.requests.length, { timeout: 20_000 }).toBeGreaterThan(polls + 10);
    const readEnd = async () => {
      const request = kysely.selectFrom("indexer_requests").where("id", "=", reindex);
      return (await request.select("done_at_ms").executeTakeFirstOrThrow()).done_at_ms;
    };
    expect(await readEnd()).toBeNull();
    expect(await readStored(service, usdtOf(devnet))).toEqual(stored);

    expect(await maintain(fork, database, { kind: "rewind", from: 16 })).toMatchObject({
      phase: "done",
    });
    await expect.poll(readEnd, { timeout: 20_000 }).not.toBeNull();
    await expectExact(service, fork, usdtOf(fork));
  });

  it("looks for the indexed chain after a start before it deletes", async () => {
    const devnet = await startUsedChain(20);
    const database = await createUrl();
    const chain = { maxRewindBlocks: 1 };
    const before = await startIndexer({ rpcUrls: [devnet.rpcUrl], database, chain });
    await expectVerified(before, devnet);
    const stored = await readStored(before, usdtOf(devnet));
    await before.close();
    const fork = await startFork(devnet, 15n);
    await fork.mine(60);
    const reader = createIndexer({ chains: [devnetChain({ rpcUrls: [fork.rpcUrl] })], database });
    onTestFinished(() => reader.close());
    const { kysely, dialect } = await reader.database();
    const { chainId } = devnet;
    await addRequest(kysely, dialect, { chainId, kind: "reindex", from: 0 });
    const service = await startIndexer({ rpcUrls: [fork.rpcUrl], database, chain });
    const readStatus = async () => (await service.status()).chains[0];
    await expect.poll(async () => (await readStatus())?.state, { timeout: 20_000 }).toBe("stopped");
    expect((await readStatus())?.problem).toMatch(/coinslot indexer rewind/);
    expect(await readStored(service, usdtOf(devnet))).toEqual(stored);
  });

  it("reports an empty index, instead of success", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    for (const kind of ["verify", "reindex", "rewind"] as const)
      await expect(maintain(devnet, database, { kind })).rejects.toThrow(
        "Nothing of devnet is indexed in this database yet",
      );
  });
});

function maintain(
  devnet: UsedChain,
  database: string,
  wish: Partial<MaintenanceWish> & Pick<MaintenanceWish, "kind">,
  signal = new AbortController().signal,
  onProgress: (progress: MaintenanceProgress) => void = () => {},
  clock = systemClock,
) {
  const chain = devnetChain({
    rpcUrls: [devnet.rpcUrl],
    pollIntervalMs: 10,
    verifyAfterMs: 200,
    requestTimeoutMs: 5_000,
    finality: { depth: finalDepth },
  });
  return runMaintenance({
    configuration: { chains: [chain], database, leaseMs: 600 },
    wish: { chain: "devnet", from: 0, ...wish },
    logger: silentLogger,
    signal,
    onProgress,
    clock,
  });
}

async function expectVerified(
  service: Awaited<ReturnType<typeof startIndexer>>,
  devnet: UsedChain,
): Promise<void> {
  const head = Number(await devnet.client.getBlockNumber());
  await expect
    .poll(async () => (await service.status()).chains[0]?.tokens[0]?.verifiedTo, {
      timeout: 20_000,
    })
    .toBe(head - finalDepth);
}
