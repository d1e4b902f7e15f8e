import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { rangeOf, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact } from "../testing/oracle.ts";
import { startIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

describe.each(enginesByDay)("coverage, on $engine", ({ createUrl }) => {
  it("has no gap where history switches over to live while blocks arrive", async () => {
    const devnet = await startUsedChain(40);
    let isOver = false;
    // Not for ever: on a busy machine they may come faster than history reads.
    const arriving = (async () => {
      const mint = { to: devnet.accounts.seller.address, amount: 1n };
      for (let count = 0; count < 200 && !isOver; count++) await devnet.mint(mint);
    })();
    const indexer = await startIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
      chain: { maxBlocksPerRequest: 7 },
    });
    try {
      await expect
        .poll(async () => (await indexer.status()).chains[0]?.state, { timeout: 60_000 })
        .toBe("live");
    } finally {
      isOver = true;
      await arriving;
    }
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("is completed, and not read again, when a token is added or its start block lowered", async () => {
    const devnet = await startUsedChain(20);
    const gold = await devnet.deployToken({ symbol: "GOLD" });
    const seller = devnet.accounts.seller.address;
    for (let amount = 1n; amount <= 20n; amount++) {
      await devnet.mint({ to: seller, amount });
      await devnet.mint({ to: seller, amount, token: gold });
    }
    await devnet.mine(12);
    const usdt = usdtOf(devnet);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const database = await createUrl();
    const rpcUrls = [proxy.url];
    const start = (tokens: { name: string; address: `0x${string}`; startBlock: number }[]) =>
      startIndexer({
        rpcUrls,
        database,
        chain: {
          tokens: tokens.map((token) => ({ ...token, decimals: 6 })),
          // Second readings are not counted.
          verifyAfterMs: 3_600_000,
        },
      });

    // From a later block: the earlier balance is read from the chain.
    const first = await start([{ name: "usdt", address: devnet.token, startBlock: 40 }]);
    await expectExact(first, devnet, usdt, { fromBlock: 40n });
    await first.close();

    let mark = proxy.requests.length;
    const second = await start([
      { name: "usdt", address: devnet.token, startBlock: 40 },
      { name: "gold", address: gold, startBlock: 0 },
    ]);
    await expectExact(second, devnet, { ...usdt, token: "gold", address: gold });
    await expectExact(second, devnet, usdt, { fromBlock: 40n });
    expect(
      askedSince().every(({ addresses }) => !addresses.includes(devnet.token.toLowerCase())),
    ).toBe(true);
    await second.close();

    mark = proxy.requests.length;
    const third = await start([
      { name: "usdt", address: devnet.token, startBlock: 10 },
      { name: "gold", address: gold, startBlock: 0 },
    ]);
    await devnet.mint({ to: seller, amount: 7n });
    await expectExact(third, devnet, usdt, { fromBlock: 10n });
    await expectExact(third, devnet, { ...usdt, token: "gold", address: gold });
    expect(askedSince().length).toBeGreaterThan(0);
    expect(askedSince().every(({ from, to }) => from >= 10 && to < 40)).toBe(true);
    await third.close();

    const fourth = await start([{ name: "usdt", address: devnet.token, startBlock: 0 }]);
    await expectExact(fourth, devnet, usdt);

    /** The requested ranges, without those that only verify an endpoint's answer. */
    function askedSince() {
      return proxy.requests.slice(mark).flatMap((calls) =>
        calls.flatMap((call) => {
          const range = rangeOf(call);
          const isBatch = calls.some(({ method }) => method === "eth_getBlockByNumber");
          return range && isBatch ? [{ ...range, addresses: JSON.stringify(call.params) }] : [];
        }),
      );
    }
  });

  it("is unaffected by second readings of another token beside a gap", async () => {
    const devnet = await startUsedChain(20);
    const gold = await devnet.deployToken({ symbol: "GOLD" });
    const seller = devnet.accounts.seller.address;
    for (let amount = 1n; amount <= 20n; amount++) {
      await devnet.mint({ to: seller, amount });
      await devnet.mint({ to: seller, amount, token: gold });
    }
    // The block below it holds usdt alone, and the one below that gold.
    const startBlock = Number(await devnet.client.getBlockNumber()) - 10;
    await devnet.mine(12);
    const database = await createUrl();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const start = (from: number, verifyAfterMs: number) =>
      startIndexer({
        rpcUrls: [proxy.url],
        database,
        chain: {
          tokens: [
            { name: "usdt", address: devnet.token, startBlock: from, decimals: 6 },
            { name: "gold", address: gold, startBlock: 0, decimals: 6 },
          ],
          verifyAfterMs,
        },
      });
    const first = await start(startBlock, 3_600_000);
    await expectExact(first, devnet, usdtOf(devnet), { fromBlock: BigInt(startBlock) });
    await first.close();
    // The gap stays open, while what lies above it is read for the second time.
    let isOpen = true;
    proxy.set(async ({ calls, forward, reply, response }) => {
      const isOfGap = calls.map(rangeOf).some((range) => (range?.to ?? startBlock) < startBlock);
      const isProof = calls.some(({ method }) => method === "eth_getBlockReceipts");
      if (isOpen && isOfGap && !isProof) return void response.destroy();
      reply(await forward());
    });
    const second = await start(10, 50);
    const verifiedTo = async () => (await second.status()).chains[0]?.tokens[1]?.verifiedTo;
    await expect.poll(verifiedTo, { timeout: 20_000 }).toBeGreaterThan(startBlock + 5);
    isOpen = false;
    await expectExact(second, devnet, usdtOf(devnet), { fromBlock: 10n });
    expect((await second.status()).chains[0]).toMatchObject({ repairedBlocks: 0 });
  });

  it("is filled beside a second reading that has asked for its blocks, and nothing is repaired", async () => {
    const devnet = await startUsedChain(20);
    const seller = devnet.accounts.seller.address;
    // The last ten blocks up to here are empty.
    const empty = Number(await devnet.client.getBlockNumber());
    for (let amount = 1n; amount <= 20n; amount++) await devnet.mint({ to: seller, amount });
    await devnet.mine(12);
    const head = Number(await devnet.client.getBlockNumber());
    const usdt = usdtOf(devnet);
    const database = await createUrl();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const start = (startBlock: number, verifyAfterMs: number) =>
      startIndexer({
        rpcUrls: [proxy.url],
        database,
        chain: {
          tokens: [{ name: "usdt", address: devnet.token, startBlock, decimals: 6 }],
          verifyAfterMs,
          requestTimeoutMs: 30_000,
        },
      });
    const middle = empty + 11;
    const first = await start(middle, 3_600_000);
    await expectExact(first, devnet, usdt, { fromBlock: BigInt(middle) });
    await first.close();

    // History fills the first 20 blocks, up to the last empty one, and waits before the others. The
    // second reading of the empty ones asks up to the known transfer above the gap.
    const startBlock = empty - 19;
    let [isOpen, isHeld] = [true, false];
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    proxy.set(async ({ calls, forward, reply, response }) => {
      const [range] = calls.flatMap((call) => rangeOf(call) ?? []);
      const isSecond = calls.some(({ method }) => method === "eth_getBlockReceipts");
      if (isOpen && !isSecond && range && range.from > empty && range.to < middle) {
        return void response.destroy();
      }
      const answers = await forward();
      if (isSecond && range && range.from <= empty && range.to >= middle) {
        isHeld = true;
        await released;
      }
      reply(answers);
    });
    const second = await start(startBlock, 50);
    const { kysely } = await second.database();
    const read = (table: "indexer_ranges" | "indexer_verified_ranges") =>
      kysely.selectFrom(table).select(["from_block", "next_block"]).execute();
    await expect.poll(() => isHeld).toBe(true);
    isOpen = false;
    await expect
      .poll(() => read("indexer_ranges"))
      .toEqual([{ from_block: startBlock, next_block: head + 1 }]);
    release();
    await expect
      .poll(() => read("indexer_verified_ranges"))
      .toEqual([{ from_block: startBlock, next_block: head + 1 - finalDepth }]);
    expect((await second.status()).chains[0]).toMatchObject({ repairedBlocks: 0 });
    await expectExact(second, devnet, usdt, { fromBlock: BigInt(startBlock) });
  });

  it("reaches the live end even where the chain grows as fast as ranges are read", async () => {
    const devnet = await startUsedChain(20);
    const gold = await devnet.deployToken({ symbol: "GOLD" });
    const seller = devnet.accounts.seller.address;
    for (let amount = 1n; amount <= 20n; amount++)
      await devnet.mint({ to: seller, amount, token: gold });
    await devnet.mine(12);
    const database = await createUrl();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const rpcUrls = [proxy.url];
    const first = await startIndexer({ rpcUrls, database });
    await expectExact(first, devnet, usdtOf(devnet));
    await first.close();

    // Whenever final blocks are read, another one has become final before the answer is there.
    proxy.set(async ({ calls, forward, reply }) => {
      const answers = await forward();
      if (calls.some(rangeOf)) {
        await devnet.mine();
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      reply(answers);
    });
    const second = await startIndexer({
      rpcUrls,
      database,
      chain: {
        tokens: [
          { name: "usdt", address: devnet.token, decimals: 6 },
          { name: "gold", address: gold, decimals: 6 },
        ],
      },
    });
    const watched = { ...usdtOf(devnet), token: "gold", address: gold };
    await expectExact(second, devnet, watched);
  });
});
