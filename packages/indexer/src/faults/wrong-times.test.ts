import { sql } from "kysely";
import { toHex } from "viem";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { engines } from "../testing/engines.ts";
import { type Answer, changing, honest, logsOf, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

const blockSchema = z.looseObject({ timestamp: z.string() });
const [sqlite] = engines;

/** The logs of an answer without the times of their blocks, as many nodes return them. */
const withoutTimes = (answer: Answer) => ({
  ...answer,
  result: logsOf(answer).map(({ blockTimestamp, ...log }) => log),
});

it.each([
  ["first", true],
  ["second", false],
])("times that the %s endpoint has made up are mended where logs have none", async (_, isFirst) => {
  if (sqlite === undefined) throw new Error("No engine");
  const devnet = await startUsedChain(isFirst ? 30 : 2);
  const [first, second] = await Promise.all([
    startFaultProxy(devnet.rpcUrl),
    startFaultProxy(devnet.rpcUrl),
  ]);
  const [liar, other] = isFirst ? [first, second] : [second, first];
  liar.set(async ({ calls, forward, reply }) => {
    const answers = await forward();
    reply(
      answers.map((answer, index) => {
        const { method = "" } = calls[index] ?? {};
        if (method === "eth_getLogs") return withoutTimes(answer);
        const block = blockSchema.safeParse(answer.result).data;
        if (block === undefined || !method.startsWith("eth_getBlockBy")) return answer;
        const timestamp = toHex(BigInt(block.timestamp) + 5n);
        return { ...answer, result: { ...block, timestamp } };
      }),
    );
  });
  other.set(changing("eth_getLogs", withoutTimes));
  const indexer = await startFastIndexer({
    rpcUrls: [first.url, second.url],
    database: await sqlite.createUrl(),
    chain: { requestTimeoutMs: 12_000, verifyAfterMs: 50 },
  });
  await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  const { kysely } = await indexer.database();
  const rows = await kysely.selectFrom("indexer_blocks").selectAll().execute();
  for (const row of rows) {
    const { timestamp } = await devnet.client.getBlock({ blockNumber: BigInt(row.number) });
    expect(row.timestamp_ms).toBe(Number(timestamp) * 1_000);
  }
});

/** Seconds: as milliseconds beyond the numbers of JavaScript. */
const farTime = "0xfffffffffffff";

it("times beyond all dates in logs are read from the blocks", async () => {
  if (sqlite === undefined) throw new Error("No engine");
  const devnet = await startUsedChain();
  const proxy = await startFaultProxy(devnet.rpcUrl);
  proxy.set(
    changing("eth_getLogs", (answer) => ({
      ...answer,
      result: logsOf(answer).map((log) => ({ ...log, blockTimestamp: farTime })),
    })),
  );
  const database = await sqlite.createUrl();
  const indexer = await startIndexer({ rpcUrls: [proxy.url], database });
  await expectExact(indexer, devnet, usdtOf(devnet));
  const { kysely } = await indexer.database();
  for (const row of await kysely.selectFrom("indexer_blocks").selectAll().execute()) {
    const { timestamp } = await devnet.client.getBlock({ blockNumber: BigInt(row.number) });
    expect(row.timestamp_ms).toBe(Number(timestamp) * 1_000);
  }
});

describe.each(engines)("on $engine", ({ createUrl }) => {
  it("a head with a time beyond all dates takes down neither queries nor a restart", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const options = { rpcUrls: [proxy.url], database: await createUrl() };
    const indexer = await startIndexer(options);
    await expectExact(indexer, devnet, usdtOf(devnet));
    let lies = 0;
    proxy.set(
      changing("eth_getBlockByNumber", (answer, { params }) => {
        if (params[0] !== "latest") return answer;
        lies += 1;
        return { ...answer, result: Object.assign({}, answer.result, { timestamp: farTime }) };
      }),
    );
    await devnet.mine();
    await expect.poll(() => lies, { timeout: 60_000 }).toBeGreaterThan(3);
    const { chains } = await indexer.status();
    expect(chains).toMatchObject([{ state: "live" }]);
    await indexer.close();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    const lying = await startIndexer(options);
    const before = lies;
    await expect.poll(() => lies, { timeout: 60_000 }).toBeGreaterThan(before + 3);
    await lying.status();
    proxy.set(honest);
    await expectExact(lying, devnet, usdtOf(devnet));
  });

  it("times beyond all dates that are stored already are bounded at the start", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    const rpcUrls = [devnet.rpcUrl];
    const first = await startIndexer({ rpcUrls, database });
    await expectExact(first, devnet, usdtOf(devnet));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await expectExact(first, devnet, usdtOf(devnet));
    await first.close();
    // As the release before has written them.
    const writer = createIndexer({ chains: [devnetChain({ rpcUrls })], database });
    const { kysely } = await writer.database();
    const far = sql<number>`4503599627370495000`;
    await kysely.updateTable("indexer_chains").set({ head_timestamp_ms: far }).execute();
    await kysely.updateTable("indexer_blocks").set({ timestamp_ms: far }).execute();
    await kysely.updateTable("indexer_events").set({ timestamp_ms: far }).execute();
    await writer.close();
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 2n });
    const indexer = await startIndexer({ rpcUrls, database });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const { events } = await indexer.readEvents({
      blockchain: "devnet",
      token: "usdt",
      address: devnet.accounts.seller.address,
      after: 0,
      limit: 10,
    });
    expect(events.map(({ transfer }) => transfer.amount)).toEqual([1n, 2n]);
  });
});
