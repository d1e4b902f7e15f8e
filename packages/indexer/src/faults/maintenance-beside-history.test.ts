import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { addRequest } from "../store/requests.ts";
import { enginesByDay } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { maintain } from "../testing/maintenance-scene.ts";
import { expectExact, readStored } from "../testing/oracle.ts";
import { startFork, startIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

describe.each(enginesByDay)("a gap below the window, on $engine", ({ createUrl }) => {
  it("a gap that no endpoint answers for delays a request by some seconds at most", async () => {
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

describe.each(enginesByDay)("a round of history, on $engine", ({ createUrl }) => {
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
