import { describe, expect, it, onTestFinished } from "vitest";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { enginesByDay } from "../testing/engines.ts";
import { changing, type Fault, honest, logsOf, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified } from "../testing/oracle.ts";
import { startFork, startIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

type Logs = Record<string, unknown>[];

/** Answers of a broken node that no token can cause. */
const impossible: { what: string; spoil: (logs: Logs) => unknown }[] = [
  { what: "no list of logs", spoil: () => null },
  { what: "removed logs", spoil: (logs) => logs.map((log) => ({ ...log, removed: true })) },
  { what: "logs twice", spoil: ([log, ...rest]) => [log, log, ...rest.slice(1)] },
  {
    what: "logs of another token",
    spoil: (logs) =>
      logs.map((log) => ({ ...log, address: "0x00000000000000000000000000000000000000aa" })),
  },
];

describe.each(enginesByDay)("a wrong answer, on $engine,", ({ createUrl }) => {
  it.each([{ logIndex: "0xffffffff" }, { blockNumber: "0x1ffffffffff" }])(
    "leads to the next endpoint by a log at %o, where no log can be",
    async (place) => {
      const devnet = await startUsedChain();
      const first = await startFaultProxy(devnet.rpcUrl);
      first.set(
        changing("eth_getLogs", (answer) => ({
          ...answer,
          result: logsOf(answer).map((log) => ({ ...log, ...place })),
        })),
      );
      const indexer = await startIndexer({
        rpcUrls: [first.url, devnet.rpcUrl],
        database: await createUrl(),
      });
      await expectExact(indexer, devnet, usdtOf(devnet));
      await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
      await expectExact(indexer, devnet, usdtOf(devnet));
    },
  );

  it.each(impossible)(
    "is never accepted with $what, however often it is repeated",
    async ({ spoil }) => {
      const devnet = await startUsedChain();
      const proxy = await startFaultProxy(devnet.rpcUrl);
      let spoilt = 0;
      const spoiling = changing("eth_getLogs", (answer) => {
        const logs = logsOf(answer);
        if (logs.length === 0) return answer;
        spoilt += 1;
        return { ...answer, result: spoil(logs) };
      });
      const spoilSix = () => {
        spoilt = 0;
        proxy.set((exchange) => (spoilt < 6 ? spoiling(exchange) : honest(exchange)));
      };
      spoilSix();
      const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
      await expectExact(indexer, devnet, usdtOf(devnet));
      spoilSix();
      await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
      await expectExact(indexer, devnet, usdtOf(devnet));
      expect(spoilt).toBeGreaterThan(0);
    },
  );

  it("hides no transfer by leaving out logs and receipts of a block with transactions", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const lists = ["eth_getLogs", "eth_getBlockReceipts"];
    proxy.set(async ({ calls, forward, reply }) => {
      const answers = await forward();
      reply(
        answers.map((answer, index) =>
          lists.includes(calls[index]?.method ?? "") ? { ...answer, result: [] } : answer,
        ),
      );
    });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("does not change the time by logs of the year 1970", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(
      changing("eth_getLogs", (answer) => ({
        ...answer,
        result: logsOf(answer).map((log) => ({ ...log, blockTimestamp: "0x0" })),
      })),
    );
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const { others } = devnet.accounts;
    const [oldest] = await indexer.readTransfers({
      ...usdtOf(devnet),
      address: `0x${others[0]?.address.slice(2).toLowerCase()}`,
      fromMs: 0,
      sort: "asc",
      limit: 1,
    });
    const { timestamp } = await devnet.client.getBlock({
      blockNumber: BigInt(oldest?.blockNumber ?? 0),
    });
    expect(oldest?.timestamp).toBe(Number(timestamp) * 1_000);
  });

  it.each([
    ["always", () => true],
    ["of one block, later than those above it", (block: number) => block === 20],
  ])("leaves no wrong time behind by logs of a wrong time %s", async (_when, isWrong) => {
    const devnet = await startUsedChain(30);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(
      changing("eth_getLogs", (answer) => ({
        ...answer,
        result: logsOf(answer).map((log) => ({
          ...log,
          ...(isWrong(Number(log.blockNumber)) && {
            blockTimestamp: `0x${(Number(log.blockTimestamp) + 3_600).toString(16)}`,
          }),
        })),
      })),
    );
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 50 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    const { kysely } = await indexer.database();
    const blocks = await kysely
      .selectFrom("indexer_blocks")
      .select(["number", "timestamp_ms"])
      .orderBy("number")
      .execute();
    const headers = await Promise.all(
      blocks.map(({ number }) => devnet.client.getBlock({ blockNumber: BigInt(number) })),
    );
    expect(blocks.map((block) => block.timestamp_ms)).toEqual(
      headers.map(({ timestamp }) => Number(timestamp) * 1_000),
    );
  });

  it("does not delay history by a head far above the chain", async () => {
    const devnet = await startUsedChain();
    const liar = await startFaultProxy(devnet.rpcUrl);
    liar.set(withHeadAbove(1_000_000));
    const indexer = await startIndexer({
      rpcUrls: [liar.url, devnet.rpcUrl],
      database: await createUrl(),
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("does not make replaceable blocks final by a head far above the chain", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    const seller = devnet.accounts.seller.address;
    for (let amount = 1n; amount < finalDepth; amount++) await devnet.mint({ to: seller, amount });
    await expectExact(indexer, devnet, usdtOf(devnet));
    let lies = 0;
    proxy.set(async (exchange) => {
      lies += 1;
      await withHeadAbove(1_000_000)(exchange);
    });
    await devnet.mint({ to: seller, amount: 100n });
    await expect.poll(() => lies, { timeout: 20_000 }).toBeGreaterThan(20);
    await devnet.reorg({ depth: finalDepth - 1 });
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("does not make replaceable blocks final by a head and by blocks of two chains behind one address", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const final = Number(await devnet.client.getBlockNumber()) - finalDepth;
    const fork = await startFork(devnet, BigInt(final - 5));
    await fork.mine(60);
    // The oldest replaceable block comes from the indexed chain, the head from another one.
    let isRead = false;
    proxy.set(async ({ calls, forward, reply, response }) => {
      if (isRead) return void response.writeHead(503).end();
      isRead = calls.some(({ params }) => Number(params[0]) === final + 1);
      proxy.setUpstream(isRead ? devnet.rpcUrl : fork.rpcUrl);
      reply(await forward());
    });
    const read = async () => {
      const { finalized, tokens } = (await indexer.status()).chains[0] ?? {};
      return { finalized, indexedTo: tokens?.[0]?.indexedTo };
    };
    await expect.poll(read, { timeout: 20_000 }).toMatchObject({ indexedTo: final + 1 });
    expect(await read()).toEqual({ finalized: final, indexedTo: final + 1 });
    proxy.setUpstream(devnet.rpcUrl);
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(await read()).toMatchObject({ finalized: final });
  });

  it("does not take the finality of indexed blocks back by a lower head", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const database = await createUrl();
    const first = await startIndexer({ rpcUrls: [proxy.url], database });
    await expectExact(first, devnet, usdtOf(devnet));
    const final = Number(await devnet.client.getBlockNumber()) - finalDepth;
    // Far behind after this, so that it reads history, and an endpoint that lags leads there.
    await first.close();
    await devnet.mine(100);
    const lagging = await startFork(devnet, BigInt(final + 5));
    let polls = 0;
    proxy.set(async ({ calls, forward, reply }) => {
      const { state } = (await second.status()).chains[0] ?? {};
      if (state === "history" && calls.some(({ params }) => params[0] === "latest")) {
        polls += 1;
        proxy.setUpstream(lagging.rpcUrl);
      }
      reply(await forward());
    });
    const second = createIndexer({
      chains: [
        devnetChain({ rpcUrls: [proxy.url], pollIntervalMs: 20, finality: { depth: finalDepth } }),
      ],
      database,
    });
    onTestFinished(() => second.close());
    await second.start();
    await expect.poll(() => polls, { timeout: 20_000 }).toBeGreaterThan(5);
    expect((await second.status()).chains[0]).toMatchObject({ state: "history", finalized: final });
    proxy.setUpstream(devnet.rpcUrl);
    proxy.set(honest);
    await expectExact(second, devnet, usdtOf(devnet));
  });

  it("does not make a start give up replaceable blocks by a head far above the chain", async () => {
    const devnet = await startUsedChain();
    await devnet.mine(70);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const options = {
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { finality: { depth: 64 } },
    };
    const first = await startIndexer(options);
    const seller = devnet.accounts.seller.address;
    for (let amount = 1n; amount <= 5n; amount++) await devnet.mint({ to: seller, amount });
    await expectExact(first, devnet, usdtOf(devnet));
    await first.close();
    // So many that the newest one shows nothing about the indexed ones.
    await devnet.mine(40);
    let lies = 0;
    proxy.set(async (exchange) => {
      lies += 1;
      await withHeadAbove(1_000_000)(exchange);
    });
    const second = await startIndexer(options);
    await expect.poll(() => lies, { timeout: 20_000 }).toBeGreaterThan(20);
    await devnet.reorg({ depth: 44 });
    proxy.set(honest);
    await devnet.mine(70);
    await expectExact(second, devnet, usdtOf(devnet));
  });
});

/** Reports its newest block as this many blocks higher. */
function withHeadAbove(blocks: number): Fault {
  return changing("eth_getBlockByNumber", (answer, { params }) => {
    const { result } = answer;
    const isBlock = typeof result === "object" && result !== null && "number" in result;
    if (params[0] !== "latest" || !isBlock) return answer;
    const number = `0x${(Number(result.number) + blocks).toString(16)}`;
    return { ...answer, result: { ...result, number } };
  });
}
