import { transferBatch } from "@coinslot/devnet";
import { describe, expect, it } from "vitest";
import { createTransferService } from "../api/transfer-service.ts";
import { enginesByDay } from "../testing/engines.ts";
import {
  type Answer,
  changing,
  type Fault,
  logsOf,
  rangeOf,
  startFaultProxy,
} from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified } from "../testing/oracle.ts";
import { startIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";
import { type Random, randomOf } from "../testing/seeded-random.ts";

const zeroBloom = `0x${"0".repeat(512)}`;

describe.each(enginesByDay)("silent loss, on $engine", ({ engine, createUrl }) => {
  it.each([
    ["real bloom filters", (fault: Fault) => fault],
    ["bloom filters of zeros", withZeroBlooms],
  ])("hides no transfer by logs that come 150 ms late, with %s", async (_, blooms) => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(blooms(withLateLogs(150, await devnet.client.getBlockNumber())));
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const { seller } = devnet.accounts;
    for (let amount = 1n; amount <= 25n; amount++)
      await devnet.mint({ to: seller.address, amount });
    // The receipts show it at once: no later repair is needed.
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]?.repairedBlocks).toBe(0);
  });

  it.each([
    ["empty answers", (random: Random) => emptyAtTimes(random, 0.2)],
    ["cut answers", (random: Random) => cutAtTimes(random, 0.2)],
    ["batches that a gateway spreads over its nodes", (random: Random) => spreadBatches(random, 6)],
  ])("is found, repaired and reported in history by %s", async (title, faultOf) => {
    const random = randomOf(`${title} on ${engine}`);
    const devnet = await startUsedChain(60);
    await crowd(devnet, 6);
    await devnet.mine(finalDepth);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(withZeroBlooms(faultOf(random)));
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { maxBlocksPerRequest: 6, verifyAfterMs: 50 },
    });
    for (let amount = 1n; amount <= 20n; amount++)
      await devnet.mint({ to: devnet.accounts.seller.address, amount });
    await devnet.mine(finalDepth);
    // The faults continue: the blocks were verified in spite of them.
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("is found by reading a range again whose second reading is truncated too", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    let isHistory = true;
    let hasCut = false;
    const fault = changing("eth_getLogs", (answer: Answer) => {
      if (isHistory) return { ...answer, result: [] };
      const logs = logsOf(answer);
      if (hasCut || logs.length < 2) return answer;
      hasCut = true;
      return { ...answer, result: logs.slice(0, 1) };
    });
    proxy.set(withZeroBlooms(fault));
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { maxBlocksPerRequest: 6, verifyAfterMs: 50 },
    });
    const state = async () => (await indexer.status()).chains[0]?.state;
    await expect.poll(state, { timeout: 20_000 }).toBe("live");
    isHistory = false;
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    expect(hasCut).toBe(true);
  });

  it("is found by receipts where both readings are truncated at one place of the last block", async () => {
    const devnet = await startUsedChain();
    await crowd(devnet, 2);
    const last = await devnet.client.getBlockNumber();
    await devnet.mine(finalDepth);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const fault = changing("eth_getLogs", (answer: Answer) => {
      const logs = logsOf(answer);
      const end = logs.findIndex((log) => BigInt(String(log.blockNumber)) === last) + 5;
      return end < 5 ? answer : { ...answer, result: logs.slice(0, end) };
    });
    proxy.set(withZeroBlooms(fault));
    const indexer = await startIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 50 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  });

  it.each([
    ["a bloom filter of zeros", { logsBloom: zeroBloom }],
    ["no bloom filter", { logsBloom: undefined }],
  ])(
    "is excluded for an empty answer and a header with %s where the chain has shown real filters",
    async (_, change) => {
      const devnet = await startUsedChain();
      const proxy = await startFaultProxy(devnet.rpcUrl);
      const indexer = await startIndexer({
        rpcUrls: [proxy.url],
        database: await createUrl(),
        chain: { verifyAfterMs: 3_600_000 },
      });
      await expectExact(indexer, devnet, usdtOf(devnet));
      const { seller } = devnet.accounts;
      await devnet.mint({ to: seller.address, amount: 1n });
      await expectExact(indexer, devnet, usdtOf(devnet));
      proxy.set(async ({ calls, forward, reply }) => {
        const answers = await forward();
        reply(
          answers.map((answer, index) => {
            const method = calls[index]?.method;
            if (method === "eth_getLogs") return { ...answer, result: [] };
            if (method !== "eth_getBlockByHash") return answer;
            return { ...answer, result: { ...Object(answer.result), ...change } };
          }),
        );
      });
      await devnet.mint({ to: seller.address, amount: 2n });
      await expectExact(indexer, devnet, usdtOf(devnet));
      expect((await indexer.status()).chains[0]?.repairedBlocks).toBe(0);
    },
  );

  it("is excluded before a block is final: one reading is not enough", async () => {
    const devnet = await startUsedChain();
    const indexer = await startIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
      chain: { verifyAfterMs: 3_600_000 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const transfers = () =>
      indexer.readTransfers({
        ...usdtOf(devnet),
        address: devnet.accounts.buyer.address,
        fromMs: 0,
        sort: "asc",
        limit: 10,
      });
    const [oldest] = await transfers();
    expect(oldest).toMatchObject({ finalized: false });
    expect(oldest?.confirmations).toBeGreaterThan(finalDepth);
    const [chain] = (await indexer.status()).chains;
    expect(chain?.tokens[0]).toMatchObject({ verifiedTo: undefined });
    const { checks } = await createTransferService(indexer).getHealth();
    const told = checks.indexers["devnet:usdt"];
    expect(told).toMatchObject({ status: "healthy", indexedTo: chain?.head });
    expect(told).not.toHaveProperty("verifiedTo");
  });

  it("is excluded by agreement on a chain with receipts in its own format, and reported as unproven", async () => {
    const devnet = await startUsedChain(20);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(
      changing("eth_getBlockReceipts", (answer) => ({
        ...answer,
        result: logsOf(answer).map((receipt) => ({ ...receipt, type: "0x7e" })),
      })),
    );
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({ proofs: "unprovable" });
  });

  it("is excluded by a second endpoint where there is one", async () => {
    const devnet = await startUsedChain(40);
    const liar = await startFaultProxy(devnet.rpcUrl);
    // Always omits the same transfer, so a repeated request agrees with it.
    liar.set(
      changing("eth_getLogs", (answer) => ({
        ...answer,
        result: logsOf(answer).filter((log) => Number(log.blockNumber) !== 20),
      })),
    );
    const indexer = await startIndexer({
      rpcUrls: [liar.url, devnet.rpcUrl],
      database: await createUrl(),
      // A busy machine must not silence the first endpoint.
      chain: { verifyAfterMs: 50, requestTimeoutMs: 12_000 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]?.repairedBlocks).toBe(1);
  });

  it("is repaired for removed, added and changed rows, with their balances", async () => {
    const devnet = await startUsedChain(30);
    const indexer = await startIndexer({
      rpcUrls: [devnet.rpcUrl],
      database: await createUrl(),
      chain: { verifyAfterMs: 2_000 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const { kysely, dialect } = await indexer.database();
    const [, second, third, fourth] = await kysely
      .selectFrom("indexer_transfers")
      .selectAll()
      .orderBy("position")
      .limit(4)
      .execute();
    if (second === undefined || third === undefined || fourth === undefined)
      throw new Error("The chain has too few transfers.");
    await kysely.deleteFrom("indexer_transfers").where("position", "=", second.position).execute();
    await kysely
      .updateTable("indexer_transfers")
      .set({ amount: dialect.amount.encode(77_777n) })
      .where("position", "=", third.position)
      .execute();
    await kysely
      .insertInto("indexer_transfers")
      .values({ ...fourth, position: fourth.position + 5 })
      .execute();
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]?.repairedBlocks).toBe(3);
  });
});

type UsedChain = Awaited<ReturnType<typeof startUsedChain>>;

/** Many transfers in one transaction, several times. */
async function crowd(devnet: UsedChain, transactions: number): Promise<void> {
  const batch = await devnet.deployTransferBatch();
  for (let index = 0; index < transactions; index++)
    await devnet.client.writeContract({
      address: batch,
      abi: transferBatch.abi,
      functionName: "run",
      args: [devnet.token, 30n, "0x1000000000000000000000000000000000000000", 3n],
    });
}

/** As a chain whose headers and receipts have no bloom filters. */
function withZeroBlooms(fault: Fault): Fault {
  const blank = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(blank);
    if (typeof value !== "object" || value === null) return value;
    return "logsBloom" in value ? { ...value, logsBloom: zeroBloom } : value;
  };
  return (exchange) =>
    fault({
      ...exchange,
      reply: (answers) =>
        exchange.reply(
          answers.map((answer) =>
            typeof answer === "object" && answer !== null && "result" in answer
              ? { ...answer, result: blank(answer.result) }
              : answer,
          ),
        ),
    });
}

/** A node that has the logs of a block this much later than the block. */
function withLateLogs(lateMs: number, head: bigint): Fault {
  const seenAt = new Map<number, number>();
  return async ({ calls, forward, reply }) => {
    const answers = await forward();
    const now = performance.now();
    const isLate = (log: Record<string, unknown>) => {
      const number = Number(log.blockNumber);
      if (number <= head) return false;
      if (!seenAt.has(number)) seenAt.set(number, now);
      return now - (seenAt.get(number) ?? now) < lateMs;
    };
    reply(
      answers.map((answer, index) =>
        calls[index]?.method === "eth_getLogs"
          ? { ...answer, result: logsOf(answer).filter((log) => !isLate(log)) }
          : answer,
      ),
    );
  };
}

function changingAtTimes(
  random: Random,
  share: number,
  change: (logs: Record<string, unknown>[]) => unknown,
): Fault {
  return changing("eth_getLogs", (answer: Answer) =>
    random.chance(share) ? { ...answer, result: change(logsOf(answer)) } : answer,
  );
}

function emptyAtTimes(random: Random, share: number): Fault {
  return changingAtTimes(random, share, () => []);
}

function cutAtTimes(random: Random, share: number): Fault {
  return changingAtTimes(random, share, (logs) => logs.slice(0, random.between(0, logs.length)));
}

/**
 * A gateway that gives each call of a batch to one of two nodes. One of these misses the newest
 * blocks.
 */
function spreadBatches(random: Random, behind: number): Fault {
  let head = 0;
  return async ({ calls, forward, reply }) => {
    const answers = await forward();
    for (const { result } of answers)
      if (typeof result === "object" && result !== null && "number" in result)
        head = Math.max(head, Number(result.number));
    reply(
      answers.map((answer, index) => {
        const call = calls[index];
        if (call?.method !== "eth_getLogs" || random.chance(0.5)) return answer;
        // It lags for ranges of history, too: it is still catching up.
        const to = rangeOf(call)?.to ?? head;
        const result = logsOf(answer).filter((log) => Number(log.blockNumber) <= to - behind / 2);
        return { ...answer, result };
      }),
    );
  };
}
