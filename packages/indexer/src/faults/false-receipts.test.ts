import { describe, expect, it } from "vitest";
import { emptyTrieRoot } from "../proof/ordered-trie-root.ts";
import { addRequest } from "../store/requests.ts";
import { enginesByDay } from "../testing/engines.ts";
import {
  type Call,
  changing,
  type Exchange,
  type Fault,
  logsOf,
  startFaultProxy,
} from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startFork, startUsedChain, usdtOf } from "../testing/scene.ts";
import { type Random, randomOf } from "../testing/seeded-random.ts";

describe.each(enginesByDay)("false receipts, on $engine", ({ engine, createUrl }) => {
  it("remove no transfer on a chain without provable receipts", async () => {
    const random = randomOf(`receipts without logs on ${engine}`);
    const devnet = await startUsedChain(30);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    // The first reading asks for receipts too, and is not tested here.
    let isFirst = true;
    proxy.set(
      changing("eth_getBlockReceipts", (answer) => {
        const isCut = !isFirst && random.chance(0.5);
        const result = logsOf(answer).map((receipt) => ({
          ...receipt,
          type: "0x7e",
          ...(isCut && { logs: [] }),
        }));
        return { ...answer, result };
      }),
    );
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { maxBlocksPerRequest: 3, verifyAfterMs: 1_500 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    isFirst = false;
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({
      proofs: "unprovable",
      repairedBlocks: 0,
    });
  });

  it("add no transfers in a repair when they come from a node on a fork", async () => {
    const random = randomOf(`receipts of a fork on ${engine}`);
    const devnet = await startUsedChain(30);
    const fork = await startFork(devnet, 3n);
    for (let amount = 1n; amount <= 40n; amount++)
      await fork.mint({ to: devnet.accounts.seller.address, amount });
    await fork.mine(2 * finalDepth);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 1_500 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    proxy.set(proofsOfAnotherNode(fork.rpcUrl, random));
    const { kysely } = await indexer.database();
    const rows = await kysely
      .selectFrom("indexer_transfers")
      .select("position")
      .orderBy("position")
      .offset(10)
      .limit(5)
      .execute();
    const positions = rows.map(({ position }) => position);
    await kysely.deleteFrom("indexer_transfers").where("position", "in", positions).execute();
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]?.repairedBlocks).toBe(positions.length);
  });

  it.each([
    ["remove no transfer that another endpoint returned", "honest first", 0],
    ["remove none by a header that is named again without its root", "honest first", 0],
    ["are repaired by another endpoint with a proven header", "liar first", 1],
  ])("below an invented header %s (%s)", async (what, order, repairedBlocks) => {
    const devnet = await startUsedChain(30);
    const liar = await startFaultProxy(devnet.rpcUrl);
    liar.set(callingEmpty(20, { leavesOutRoot: what.includes("without its root") }));
    const urls = [devnet.rpcUrl, liar.url];
    const indexer = await startFastIndexer({
      rpcUrls: order === "liar first" ? urls.reverse() : urls,
      database: await createUrl(),
      // A busy machine must not silence the first endpoint.
      chain: { verifyAfterMs: 50, requestTimeoutMs: 12_000 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({
      repairedBlocks,
      health: "healthy",
    });
  });

  it("remove no transfer while the other endpoint is silent, without its agreement", async () => {
    const devnet = await startUsedChain(30);
    const [truthful, liar] = [
      await startFaultProxy(devnet.rpcUrl),
      await startFaultProxy(devnet.rpcUrl),
    ];
    const indexer = await startFastIndexer({
      rpcUrls: [truthful.url, liar.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 50 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    truthful.cut();
    liar.set(callingEmpty(20));
    const { kysely, dialect } = await indexer.database();
    const { chainId } = devnet;
    await addRequest(kysely, dialect, { chainId, kind: "verify", from: 0 });

    const status = async () => (await indexer.status()).chains[0];
    const isDecided = async () => {
      const chain = await status();
      return chain?.problem?.includes("disputed") === true || chain?.repairedBlocks !== 0;
    };
    await expect.poll(isDecided, { timeout: 40_000 }).toBe(true);
    expect(await status()).toMatchObject({ repairedBlocks: 0, health: "degraded" });
    expect((await status())?.problem).toContain("Blocks 20 to 20 are disputed");

    truthful.mend();
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    // The round that verifies the last range ends after it, and then takes the dispute back.
    const isHealthy = { repairedBlocks: 0, health: "healthy" };
    await expect.poll(status, { timeout: 20_000 }).toMatchObject(isHealthy);
  });

  it("show no chain as unprovable after a restart that was provable before", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const options = {
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { verifyAfterMs: 50 },
    };
    const first = await startFastIndexer(options);
    await expectVerified(first, devnet, usdtOf(devnet), finalDepth);
    await first.close();
    proxy.set(
      changing("eth_getBlockReceipts", (answer) => {
        const result = logsOf(answer).map((receipt) => ({ ...receipt, type: "0x7e" }));
        return { ...answer, result };
      }),
    );
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await devnet.mine(finalDepth);
    const second = await startFastIndexer(options);
    await expectExact(second, devnet, usdtOf(devnet));
    await expectVerified(second, devnet, usdtOf(devnet), finalDepth);
    expect((await second.status()).chains[0]?.proofs).toBe("provable");
  });

  it("stop neither these nor later blocks by another root in some", async () => {
    const devnet = await startUsedChain(30);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    // As on a chain that leaves its system transactions out of the root.
    proxy.set(
      changing("eth_getBlockReceipts", (answer) =>
        isOdd(answer.result)
          ? {
              ...answer,
              result: logsOf(answer).map((receipt) => ({ ...receipt, cumulativeGasUsed: "0x1" })),
            }
          : answer,
      ),
    );
    const indexer = await startFastIndexer({
      rpcUrls: [proxy.url],
      database: await createUrl(),
      chain: { maxBlocksPerRequest: 4, verifyAfterMs: 50 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect((await indexer.status()).chains[0]).toMatchObject({
      proofs: "provable",
      repairedBlocks: 0,
      health: "healthy",
    });
  });
});

/**
 * A node that reports one block, by its hash, as empty: its header, its receipts and its logs
 * agree.
 */
function callingEmpty(block: number, { leavesOutRoot = false } = {}): Fault {
  const name = `0x${block.toString(16)}`;
  return async ({ calls, forward, reply }) => {
    const answers = await forward();
    reply(
      answers.map((answer, index) => {
        const { method, params } = calls[index] ?? { method: "", params: [] };
        if (method === "eth_getLogs")
          return {
            ...answer,
            result: logsOf(answer).filter((log) => Number(log.blockNumber) !== block),
          };
        if (params[0] !== name) return answer;
        if (method === "eth_getBlockReceipts") return { ...answer, result: [] };
        if (typeof answer.result !== "object") return answer;
        const isAlone = calls.every((call) => call.method !== "eth_getBlockReceipts");
        const receiptsRoot = leavesOutRoot && isAlone ? undefined : emptyTrieRoot;
        const invented = { receiptsRoot, transactions: [] };
        return { ...answer, result: { ...answer.result, ...invented } };
      }),
    );
  };
}

/** A gateway that has half of the requests for receipts alone answered by another node. */
function proofsOfAnotherNode(url: string, random: Random): Fault {
  return async ({ calls, forward, reply }: Exchange) => {
    const isProof = calls.some(({ method }) => method === "eth_getBlockReceipts");
    const isAlone = !calls.some(({ method }) => method === "eth_getLogs");
    reply(isProof && isAlone && random.chance(0.5) ? await ask(url, calls) : await forward());
  };
}

async function ask(url: string, calls: readonly Call[]): Promise<unknown[]> {
  const body = JSON.stringify(calls.map((call) => ({ jsonrpc: "2.0", ...call })));
  const headers = { "content-type": "application/json" };
  const answers: unknown = await (await fetch(url, { method: "POST", headers, body })).json();
  return Array.isArray(answers) ? answers : [];
}

function isOdd(receipts: unknown): boolean {
  return logsOf({ id: 0, result: receipts }).some(
    ({ blockNumber }) => Number(blockNumber) % 6 === 0,
  );
}
