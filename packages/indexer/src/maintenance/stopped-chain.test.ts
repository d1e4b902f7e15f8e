import { systemClock } from "@coinslot/chain";
import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { addRequest } from "../store/requests.ts";
import { enginesByDay } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact, readStored } from "../testing/oracle.ts";
import { expectVerified, maintain } from "../testing/request-maintenance.ts";
import {
  createFastClock,
  startFork,
  startIndexer,
  startUsedChain,
  usdtOf,
} from "../testing/scene.ts";
import type { MaintenanceProgress } from "./run-maintenance.ts";

describe.each(enginesByDay)("maintenance, on $engine", ({ createUrl }) => {
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

  it("ends with the blocks that a rewind has left, where the new chain's final block is a lower one", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const database = await createUrl();
    const chain = { maxRewindBlocks: 1 };
    const service = await startIndexer({ rpcUrls: [proxy.url], database, chain });
    await expectVerified(service, devnet);
    const fork = await startFork(devnet, 15n);
    await fork.mine(15);
    proxy.setUpstream(fork.rpcUrl);
    const readStatus = async () => (await service.status()).chains[0];
    await expect.poll(async () => (await readStatus())?.state, { timeout: 20_000 }).toBe("stopped");
    const { finalized } = (await readStatus()) ?? {};
    const steps: MaintenanceProgress[] = [];
    // On a clock that stands still it never loses its patience with the stopped chain.
    const verifying = maintain(
      fork,
      database,
      { kind: "verify" },
      AbortSignal.timeout(60_000),
      (progress) => steps.push(progress),
      { ...systemClock, now: () => 0 },
    );
    await expect.poll(() => steps.at(-1)?.phase, { timeout: 20_000 }).toBe("working");
    await maintain(fork, database, { kind: "rewind", from: 16 });
    expect(await verifying).toMatchObject({ phase: "done", share: 1 });
    expect((await readStatus())?.finalized).toBeLessThan(finalized ?? 0);
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
});
