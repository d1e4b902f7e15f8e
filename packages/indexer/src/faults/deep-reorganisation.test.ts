import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { ChainStoppedError } from "../query/chain-stopped-error.ts";
import { addRequest } from "../store/requests.ts";
import { enginesByDay } from "../testing/engines.ts";
import { startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified, readStored } from "../testing/oracle.ts";
import { startFastIndexer, startFork, startUsedChain, usdtOf } from "../testing/scene.ts";

type UsedChain = Awaited<ReturnType<typeof startUsedChain>>;

describe.each(enginesByDay)("reorganisations deeper than final, on $engine", ({ createUrl }) => {
  it("are undone, with a retraction of each removed transfer", async () => {
    const devnet = await startUsedChain();
    const seller = lower(devnet.accounts.seller.address);
    const indexer = await startFastIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    for (let amount = 1n; amount <= 4n; amount++) await devnet.mint({ to: seller, amount });
    await devnet.mine(finalDepth + 2);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await indexer.readBalance({ ...usdtOf(devnet), address: seller })).toBe(10n);

    // Otherwise a running second reading may meet the replaced blocks first.
    const final = Number(await devnet.client.getBlockNumber()) - finalDepth;
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.tokens[0]?.verifiedTo, {
        timeout: 20_000,
      })
      .toBe(final);
    await devnet.reorg({ depth: finalDepth + 4 });
    await devnet.mint({ to: seller, amount: 50n });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await indexer.readBalance({ ...usdtOf(devnet), address: seller })).toBe(53n);
    const { events } = await indexer.readEvents({
      ...usdtOf(devnet),
      address: seller,
      after: 0,
      limit: 100,
    });
    expect(events.map(({ type, transfer }) => [type, transfer.amount])).toEqual([
      ["transfer", 1n],
      ["transfer", 2n],
      ["transfer", 3n],
      ["transfer", 4n],
      ["retraction", 4n],
      ["retraction", 3n],
      ["transfer", 50n],
    ]);
    expect((await indexer.status()).chains[0]).toMatchObject({
      state: "live",
      doubtedFrom: undefined,
    });
  });

  it("are undone when they happened while the service was down, also in the middle of history", async () => {
    const devnet = await startUsedChain(30);
    const database = await createUrl();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    // History stops in the middle: no more ranges are answered.
    let ranges = 0;
    proxy.set(async (exchange) => {
      const isRange = exchange.calls.some(({ params }) =>
        JSON.stringify(params).includes("fromBlock"),
      );
      if (isRange && ++ranges > 4) return void exchange.response.destroy();
      exchange.reply(await exchange.forward());
    });
    const first = await startFastIndexer({
      rpcUrls: [proxy.url],
      database,
      chain: { maxBlocksPerRequest: 5, requestsInFlight: 1 },
    });
    await expect
      .poll(async () => (await readStored(first, usdtOf(devnet))).length, { timeout: 20_000 })
      .toBeGreaterThan(4);
    await first.close();
    const stored = await readNewest(devnet, database);
    const head = Number(await devnet.client.getBlockNumber());
    await devnet.reorg({ depth: head - stored + 3 });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 5n });
    const second = await startFastIndexer({ rpcUrls: [devnet.rpcUrl], database });
    await expectExact(second, devnet, usdtOf(devnet));
  });

  it("are undone where history that was not verified has passed the known blocks by", async () => {
    const devnet = await startUsedChain();
    await devnet.mine(20);
    const database = await createUrl();
    const start = (verifyAfterMs: number) =>
      startFastIndexer({
        rpcUrls: [devnet.rpcUrl],
        database,
        chain: { maxRewindBlocks: 3, verifyAfterMs },
      });
    const verifying = await start(100);
    await expectVerified(verifying, devnet, usdtOf(devnet), finalDepth);
    await verifying.close();
    await devnet.mine(200);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 5n });
    await devnet.mine(finalDepth + 1);
    const catchingUp = await start(3_600_000);
    await expectExact(catchingUp, devnet, usdtOf(devnet));
    await catchingUp.close();
    await devnet.reorg({ depth: finalDepth + 4 });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    const indexer = await start(100);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({ state: "live" });
  });

  it("beyond the configured depth stop the chain: unhealthy, not served, with its true lag, until it is rewound", async () => {
    const devnet = await startUsedChain();
    const seller = lower(devnet.accounts.seller.address);
    const indexer = await startFastIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
      chain: { maxRewindBlocks: 3, verifyAfterMs: 100 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await devnet.mint({ to: seller, amount: 7n });
    await devnet.mine(finalDepth + 6);
    await expectExact(indexer, devnet, usdtOf(devnet));
    // Blocks that are not verified are taken back without a command.
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);

    await devnet.reorg({ depth: finalDepth + 9 });
    await devnet.mine(5);
    const chain = async () => (await indexer.status()).chains[0];
    const head = Number(await devnet.client.getBlockNumber());
    // It may stop before the last block came.
    await expect.poll(chain).toMatchObject({ state: "stopped", health: "unhealthy", head });
    const stopped = await chain();
    expect(stopped?.lagBlocks).toBeGreaterThanOrEqual(finalDepth + 9);
    expect(stopped?.problem).toMatch(/coinslot indexer rewind --chain devnet --to \d+/);
    expect(await indexer.readHealth()).toMatchObject({
      status: "unhealthy",
      tokens: [{ isHealthy: false, lag: stopped?.lagBlocks }],
    });
    const question = { ...usdtOf(devnet), address: seller };
    await expect(indexer.readBalance(question)).rejects.toThrow(ChainStoppedError);
    await expect(
      indexer.readTransfers({ ...question, fromMs: 0, sort: "asc", limit: 1 }),
    ).rejects.toThrow(ChainStoppedError);
    await expect(indexer.readEvents({ ...question, after: 0, limit: 1 })).rejects.toThrow(
      ChainStoppedError,
    );
    // The head advances, and the lag with it.
    await devnet.mine(4);
    await expect
      .poll(async () => (await chain())?.lagBlocks, { timeout: 20_000 })
      .toBe((stopped?.lagBlocks ?? 0) + 4);

    const to = Number(/--to (\d+)/.exec(stopped?.problem ?? "")?.[1]);
    const { kysely, dialect } = await indexer.database();
    const chainId = stopped?.chainId ?? 0;
    await addRequest(kysely, dialect, { chainId, kind: "rewind", from: to + 1 });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await indexer.readBalance(question)).toBe(0n);
  });

  it("a reorganisation that stopped the chain leaves its way out in the status after a restart, before a new decision", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    const start = (verifyAfterMs: number) =>
      startFastIndexer({
        rpcUrls: [devnet.rpcUrl],
        database,
        chain: { maxRewindBlocks: 3, verifyAfterMs },
      });
    const first = await start(100);
    await devnet.mine(finalDepth + 6);
    await expectExact(first, devnet, usdtOf(devnet));
    await expectVerified(first, devnet, usdtOf(devnet), finalDepth);
    await devnet.reorg({ depth: finalDepth + 9 });
    await expect
      .poll(async () => (await first.status()).chains[0])
      .toMatchObject({ state: "stopped" });
    await first.close();
    await devnet.mine(5);
    const head = Number(await devnet.client.getBlockNumber());
    const second = await start(3_600_000);
    const chain = async () => (await second.status()).chains[0];
    await expect.poll(chain).toMatchObject({ head });
    expect(await chain()).toMatchObject({
      state: "stopped",
      problem: expect.stringContaining("coinslot indexer rewind --chain devnet --to "),
    });
  });

  it("change nothing when an endpoint reverses them after a while", async () => {
    const devnet = await startUsedChain();
    const fork = await startFork(devnet, await devnet.client.getBlockNumber());
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await devnet.mine(finalDepth + 3);
    await fork.mine(2 * finalDepth + 20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 3_600_000 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const chain = async () => (await indexer.status()).chains[0];
    proxy.setUpstream(fork.rpcUrl);
    await expect.poll(async () => (await chain())?.doubtedFrom, { timeout: 20_000 }).toBeDefined();
    expect(await chain()).toMatchObject({ health: "unhealthy", state: "live" });
    expect((await chain())?.lagBlocks).toBeGreaterThan(finalDepth);

    const stored = await readStored(indexer, usdtOf(devnet));
    const { kysely } = await indexer.database();
    const readEvents = () => kysely.selectFrom("indexer_events").selectAll().execute();
    const events = await readEvents();
    proxy.setUpstream(devnet.rpcUrl);
    await expect
      .poll(chain, { timeout: 20_000 })
      .toMatchObject({ doubtedFrom: undefined, state: "live", health: "healthy" });
    expect(await readStored(indexer, usdtOf(devnet))).toEqual(stored);
    expect(await readEvents()).toEqual(events);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("stay unconfirmed while another endpoint is away, and are undone when it answers", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [devnet.rpcUrl, proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 100 },
    });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth + 2);
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.cut();
    await devnet.reorg({ depth: finalDepth + 4 });
    await devnet.mine(3);
    const chain = async () => (await indexer.status()).chains[0];
    await expect.poll(async () => (await chain())?.doubtedFrom, { timeout: 20_000 }).toBeDefined();
    expect(await chain()).toMatchObject({ health: "unhealthy", state: "live" });
    expect((await chain())?.lagBlocks).toBeGreaterThan(finalDepth);
    expect((await chain())?.problem).toMatch(/endpoint/);
    proxy.mend();
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await chain()).toMatchObject({ state: "live", doubtedFrom: undefined });
  });

  it("stay unconfirmed while another endpoint has stopped below them, and are undone when it continues", async () => {
    const devnet = await startUsedChain();
    const stuck = await startFork(devnet, (await devnet.client.getBlockNumber()) - 3n);
    const proxy = await startFaultProxy(stuck.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [devnet.rpcUrl, proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 100 },
    });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth + 6);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await devnet.reorg({ depth: finalDepth + 4 });
    await devnet.mine(3);
    const chain = async () => (await indexer.status()).chains[0];
    await expect
      .poll(async () => (await chain())?.lagBlocks, { timeout: 20_000 })
      .toBeGreaterThan(finalDepth);
    expect(await chain()).toMatchObject({ health: "unhealthy", state: "live" });
    expect((await chain())?.problem).toMatch(/endpoint 2/);
    proxy.setUpstream(devnet.rpcUrl);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await chain()).toMatchObject({ state: "live", doubtedFrom: undefined });
  });

  it("do not affect another chain", async () => {
    const devnet = await startUsedChain();
    const other = await startUsedChain();
    const proxy = await startFaultProxy(other.rpcUrl);
    // The same contract under another chain's id.
    proxy.set(async ({ calls, forward, reply }) => {
      const answers = await forward();
      reply(
        answers.map((answer, index) =>
          calls[index]?.method === "eth_chainId" ? { ...answer, result: "0x3dc" } : answer,
        ),
      );
    });
    const common = {
      pollIntervalMs: 10,
      finality: { depth: finalDepth },
      verifyAfterMs: 100,
      maxRewindBlocks: 0,
    };
    const indexer = createIndexer({
      chains: [
        devnetChain({ rpcUrls: [devnet.rpcUrl], ...common }),
        devnetChain({ name: "other", chainId: 988, rpcUrls: [proxy.url], ...common }),
      ],
      database: await createUrl(),
    });
    onTestFinished(() => indexer.close());
    await indexer.start();
    await expectExact(indexer, devnet, usdtOf(devnet));
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    const stored = await readStored(indexer, usdtOf(devnet));
    await devnet.reorg({ depth: finalDepth + 5 });
    await devnet.mine(1);
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.state, { timeout: 20_000 })
      .toBe("stopped");
    await other.mint({ to: other.accounts.seller.address, amount: 9n });
    const question = {
      ...usdtOf(other),
      blockchain: "other",
      address: lower(other.accounts.seller.address),
    };
    await expect.poll(() => indexer.readBalance(question), { timeout: 20_000 }).toBe(9n);
    expect(await readStored(indexer, usdtOf(devnet))).toEqual(stored);
  });
});

/** The block of the newest stored transfer, of an indexer that is closed. */
async function readNewest(devnet: UsedChain, database: string): Promise<number> {
  const reader = createIndexer({ chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })], database });
  const stored = await readStored(reader, usdtOf(devnet));
  await reader.close();
  return stored.at(-1)?.blockNumber ?? 0;
}

function lower(address: string): `0x${string}` {
  return `0x${address.slice(2).toLowerCase()}`;
}
