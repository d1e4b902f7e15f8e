import { toHex } from "viem";
import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { changing, startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import { startFastIndexer, startFork, startUsedChain, usdtOf } from "../testing/scene.ts";

describe.each(enginesByDay)("a stalled head, on $engine", ({ createUrl }) => {
  it("makes the chain degraded, then unhealthy, until it moves, at any time of the chain's clock", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { staleAfterMs: 700 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const health = async () => (await indexer.status()).chains[0]?.health;
    const becomes = (expected: string) =>
      expect.poll(health, { timeout: 20_000, interval: 20 }).toBe(expected);
    await devnet.mine();
    await becomes("healthy");
    await becomes("degraded");
    await becomes("unhealthy");
    // A day ahead of all other clocks: ages are not computed from it.
    await devnet.client.increaseTime({ seconds: 86_400 });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await becomes("healthy");
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.cut();
    await becomes("unhealthy");
    expect((await indexer.status()).chains[0]?.problem).toContain("No RPC endpoint");
    proxy.mend();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 2n });
    await becomes("healthy");
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("has no lag after a failed poll, however often the next ones fail", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const chainStatus = async () => (await indexer.status()).chains[0];
    const lag = async () => (await chainStatus())?.lagBlocks;
    await expect.poll(lag, { timeout: 20_000 }).toBe(0);
    proxy.cut();
    const problem = async () => (await chainStatus())?.problem;
    await expect.poll(problem, { timeout: 20_000 }).toContain("No RPC endpoint");
    const { kysely } = await indexer.database();
    const [failures, lags] = [new Set<number>(), new Set<number | undefined>()];
    const countFailures = async () => {
      lags.add(await lag());
      const row = await kysely
        .selectFrom("indexer_chains")
        .select("seen_at_ms")
        .executeTakeFirstOrThrow();
      return failures.add(row.seen_at_ms).size;
    };
    await expect.poll(countFailures, { timeout: 20_000 }).toBeGreaterThan(2);
    expect([...lags]).toEqual([undefined]);
    proxy.mend();
    await expect.poll(lag, { timeout: 20_000 }).toBe(0);
  });

  it("of the first of three endpoints hides no block from the index, with a fresh time", async () => {
    const devnet = await startUsedChain();
    const [frozen, second, third] = await Promise.all([
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const indexer = await startFastIndexer({
      rpcUrls: [frozen.url, second.url, third.url],
      database: await createUrl(),
      chain: { staleAfterMs: 700, requestTimeoutMs: 12_000 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const { number, hash, parentHash } = await devnet.client.getBlock();
    const head = { number: toHex(number), hash, parentHash };
    frozen.set(
      changing("eth_getBlockByNumber", (answer, { params }) =>
        params[0] === "latest"
          ? { ...answer, result: { ...head, timestamp: toHex(Math.floor(Date.now() / 1_000)) } }
          : answer,
      ),
    );
    // Too few blocks for the endpoint to count as lagging.
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it.each([
    ["third of three", 3],
    ["first of two", 2],
  ] as const)("may end by a block that the %s makes up, and hides none", async (_liar, count) => {
    const devnet = await startUsedChain();
    const proxies = await Promise.all(
      Array.from({ length: count }, () => startFaultProxy(devnet.rpcUrl)),
    );
    const indexer = await startFastIndexer({
      rpcUrls: proxies.map(({ url }) => url),
      database: await createUrl(),
      chain: { staleAfterMs: 700, requestTimeoutMs: 12_000 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const fork = await startFork(devnet, await devnet.client.getBlockNumber());
    await fork.mint({ to: fork.accounts.seller.address, amount: 999n });
    (count === 3 ? proxies[2] : proxies[0])?.setUpstream(fork.rpcUrl);
    await expectExact(indexer, fork, usdtOf(fork));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await devnet.mine(9);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });
});
