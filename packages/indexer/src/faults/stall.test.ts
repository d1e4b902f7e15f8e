import { toHex } from "viem";
import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { changing, type Fault, startFaultProxy } from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import { startFastIndexer, startFork, startUsedChain, usdtOf } from "../testing/scene.ts";

/** A busy machine must not silence endpoints. */
const patient = { requestTimeoutMs: 12_000 };

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
    frozen.set(withLatest({ number: toHex(number), hash, parentHash, timestamp: "now" }));
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
    const liar = count === 3 ? proxies[2] : proxies[0];
    liar?.setUpstream(fork.rpcUrl);
    liar?.set(withLatest({ timestamp: "now" }));
    await expectExact(indexer, fork, usdtOf(fork));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await devnet.mine(9);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("of the second of two does not stop the index, with a fresh time, nor after a restart", async () => {
    const devnet = await startUsedChain();
    await devnet.mine(1_000);
    const [first, second] = [
      await startFaultProxy(devnet.rpcUrl),
      await startFaultProxy(devnet.rpcUrl),
    ];
    const low = await devnet.client.getBlock({ blockNumber: 10n });
    const { hash, parentHash } = low;
    second.set(withLatest({ number: toHex(low.number), hash, parentHash, timestamp: "now" }));
    const database = await createUrl();
    const options = { rpcUrls: [first.url, second.url], database, chain: patient };
    const indexer = await startFastIndexer(options);
    await expectExact(indexer, devnet, usdtOf(devnet));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await indexer.close();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 4n });
    const restarted = await startFastIndexer(options);
    await expectExact(restarted, devnet, usdtOf(devnet));
  });

  it.each([2, 3])("lets the first of %i carry no index off by a head far above", async (count) => {
    const devnet = await startUsedChain();
    const proxies = await Promise.all(
      Array.from({ length: count }, () => startFaultProxy(devnet.rpcUrl)),
    );
    const indexer = await startFastIndexer({
      rpcUrls: proxies.map(({ url }) => url),
      database: await createUrl(),
      chain: patient,
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const [first, ...others] = proxies;
    for (const other of others) other.set(withLatest({ timestamp: toHex(1_700_000_000) }));
    const { hash, parentHash } = await devnet.client.getBlock();
    const timestamp = toHex(Math.floor(Date.now() / 1_000));
    first?.set(
      changing("eth_getBlockByNumber", (answer, { params: [block] }) => {
        const number = block === "latest" ? toHex(100_000_000_000) : block;
        const isInvented = answer.result === null || block === "latest";
        const result = { number, hash, parentHash, timestamp, transactions: [] };
        return isInvented ? { ...answer, result } : answer;
      }),
    );
    const polls = others[0]?.requests.length ?? 0;
    await expect
      .poll(() => (others[0]?.requests.length ?? 0) - polls, { timeout: 30_000 })
      .toBeGreaterThan(20);
    expect((await indexer.status()).chains[0]).toMatchObject({ state: "live" });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 3n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });
});

/** A node whose newest block has other fields; a time may be `now`. */
function withLatest({ timestamp, ...fields }: Record<string, string>): Fault {
  return changing("eth_getBlockByNumber", (answer, { params }) => {
    if (params[0] !== "latest") return answer;
    const time = timestamp === "now" ? toHex(Math.floor(Date.now() / 1_000)) : timestamp;
    return { ...answer, result: Object.assign({}, answer.result, fields, { timestamp: time }) };
  });
}
