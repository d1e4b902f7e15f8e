import type { Address } from "viem";
import { describe, expect, it } from "vitest";
import type { Indexer } from "../indexer.ts";
import { enginesByDay } from "../testing/engines.ts";
import {
  type Answer,
  type Call,
  changing,
  errorAnswer,
  type Fault,
  honest,
  logsOf,
  startFaultProxy,
} from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

type Log = Record<string, unknown>;

const isOf =
  (number: number) =>
  ({ blockNumber }: Log) =>
    Number(blockNumber) === number;

/** Changes each answer; `calls` are those of its request. */
function each(
  change: (answer: Answer, call: Call | undefined, calls: readonly Call[]) => unknown,
): Fault {
  return async ({ calls, forward, reply }) => {
    const answers = await forward();
    reply(answers.map((answer, index) => change(answer, calls[index], calls)));
  };
}

/** Changes the logs of one block, and its receipts, which hold them. */
function changeBlock(
  number: number,
  change: { logs: (logs: Log[]) => Log[]; receipt?: Log },
): (answer: Answer, call: Call | undefined) => unknown {
  return (answer, call) => {
    const all = logsOf(answer);
    const own = all.filter(isOf(number));
    if (call?.method === "eth_getLogs")
      return {
        ...answer,
        result: [...all.filter((log) => !own.includes(log)), ...change.logs(own)],
      };
    if (call?.method !== "eth_getBlockReceipts" || own.length === 0) return answer;
    const changed = own.map((receipt) => ({
      ...receipt,
      ...change.receipt,
      logs: change.logs(logsOf({ id: 0, result: receipt.logs })),
    }));
    return { ...answer, result: changed };
  };
}

/** Hides the transfers of one block, in logs and in receipts. */
const hideBlock = (number: number) => changeBlock(number, { logs: () => [] });

const foreign = { receipt: { type: "0x7e" } };

describe.each(enginesByDay)("a node that hides transfers, on $engine", ({ createUrl }) => {
  it("is not the second one to say so while another one answers", async () => {
    const devnet = await startUsedChain();
    const [first, second] = await Promise.all([
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url],
      database: await createUrl(),
      chain: { requestTimeoutMs: 6_000, verifyAfterMs: 400 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const hidden = Number(await devnet.client.getBlockNumber()) + 1;
    first.cut();
    second.set(each(hideBlock(hidden)));
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await expect
      .poll(async () => (await indexer.status()).chains[0]?.tokens[0]?.indexedTo, {
        timeout: 60_000,
      })
      .toBe(hidden);
    const asked = first.requests.length;
    first.mend();
    await expect.poll(() => first.requests.length, { timeout: 60_000 }).toBeGreaterThan(asked);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 8n });
    await devnet.mine(finalDepth);
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  }, 120_000);

  it("has no amount final that another one denies, before it takes it back", async () => {
    let isLying = true;
    const indexer = await startPair({
      database: await createUrl(),
      liar: each(
        changeBlock(20, {
          ...foreign,
          logs: (logs) =>
            isLying ? logs.map((log) => ({ ...log, data: `0x${"7".padStart(64, "0")}` })) : logs,
        }),
      ),
      other: each(changeBlock(20, { ...foreign, logs: (logs) => logs })),
    });
    await expectDispute(indexer);
    const status = async () => (await indexer.status()).chains[0];
    expect(await status()).toMatchObject({ proofs: "provable", repairedBlocks: 0 });
    isLying = false;
    await expect
      .poll(status, { timeout: 60_000 })
      .toMatchObject({ repairedBlocks: 1, health: "healthy" });
  }, 120_000);

  it("has no invented transfer final that it adds as the second one, without proof", async () => {
    const indexer = await startPair({
      database: await createUrl(),
      liar: each(changeBlock(20, { ...foreign, logs: (logs) => logs })),
      other: each(
        changeBlock(20, {
          ...foreign,
          logs: (logs) => logs.flatMap((log) => [log, { ...log, logIndex: "0x7" }]),
        }),
      ),
    });
    await expectDispute(indexer);
    expect((await indexer.status()).chains[0]?.repairedBlocks).toBe(0);
  }, 120_000);

  it("is not heard again by silence about a transfer that another one has proven", async () => {
    const hide = hideBlock(20);
    const indexer = await startPair({
      database: await createUrl(),
      liar: each((answer, call, calls) => {
        const isProof = calls.some(({ method }) => method === "eth_getBlockReceipts");
        const isOfBlock =
          call?.method === "eth_getBlockReceipts" ||
          (call?.method === "eth_getBlockByNumber" && !isProof);
        const isSilent = isOfBlock && Number(call.params[0]) === 20;
        return isSilent || call?.method === "eth_getTransactionReceipt"
          ? errorAnswer(answer, -32_000, "Not now")
          : hide(answer, call);
      }),
    });
    await expectDispute(indexer);
  }, 120_000);

  it("is mended beside a third one that is dead for good", async () => {
    const devnet = await startUsedChain(30);
    const [first, third] = await Promise.all([
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    first.set(each(hideBlock(20)));
    third.cut();
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, devnet.rpcUrl, third.url],
      database: await createUrl(),
      chain: { requestTimeoutMs: 12_000, verifyAfterMs: 50 },
    });
    await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
    expect((await indexer.status()).chains[0]).toMatchObject({ repairedBlocks: 1 });
  }, 120_000);

  it("disputes a block alone that the other one has lost, and no block around it", async () => {
    const devnet = await startUsedChain();
    const { others, seller } = devnet.accounts;
    const last = others[5]?.address ?? seller.address;
    await devnet.mine(6);
    await devnet.mint({ to: seller.address, amount: 5n });
    const wrong = Number(await devnet.client.getBlockNumber());
    await devnet.mine(6);
    await devnet.mint({ to: last, amount: 6n });
    await devnet.mine(finalDepth);
    const [first, second] = await Promise.all([
      startFaultProxy(devnet.rpcUrl),
      startFaultProxy(devnet.rpcUrl),
    ]);
    const seven = `0x${"7".padStart(64, "0")}`;
    const lie = (log: Log) => (isOf(wrong)(log) ? { ...log, data: seven } : log);
    first.set(
      changing("eth_getLogs", (answer) => ({ ...answer, result: logsOf(answer).map(lie) })),
    );
    second.set(
      changing("eth_getBlockByNumber", (answer, { params }) =>
        Number(params[0]) === wrong ? errorAnswer(answer, -32_000, "Not now") : answer,
      ),
    );
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url],
      database: await createUrl(),
      chain: { requestTimeoutMs: 12_000, verifyAfterMs: 1_000 },
    });
    const state = async () => (await indexer.status()).chains[0]?.state;
    await expect.poll(state, { timeout: 60_000 }).toBe("live");
    first.set(honest);
    const finalOf = async (address: Address) => {
      const asked = { ...usdtOf(devnet), address, fromMs: 0, sort: "asc", limit: 10 } as const;
      return (await indexer.readTransfers(asked)).map(({ finalized }) => finalized);
    };
    await expect.poll(() => finalOf(last), { timeout: 60_000 }).toEqual([true]);
    expect(await finalOf(seller.address)).toEqual([false]);
    second.set(honest);
    await expect.poll(() => finalOf(seller.address), { timeout: 60_000 }).toEqual([true]);
  }, 130_000);
});

/** An indexer that reads first at one endpoint, which lies about block 20, and then at another. */
async function startPair({
  database,
  liar,
  other = honest,
}: {
  database: string;
  liar: Fault;
  other?: Fault;
}): Promise<Indexer> {
  const devnet = await startUsedChain(30);
  const [first, second] = await Promise.all([
    startFaultProxy(devnet.rpcUrl),
    startFaultProxy(devnet.rpcUrl),
  ]);
  first.set(liar);
  second.set(other);
  return startFastIndexer({
    rpcUrls: [first.url, second.url],
    database,
    // A busy machine must not silence an endpoint.
    chain: { requestTimeoutMs: 12_000, verifyAfterMs: 50 },
  });
}

async function expectDispute(indexer: Indexer): Promise<void> {
  const read = async () => {
    const { problem, tokens } = (await indexer.status()).chains[0] ?? {};
    return { problem: problem ?? "", verifiedTo: tokens?.[0]?.verifiedTo ?? 0 };
  };
  const isDecided = async () => {
    const { problem, verifiedTo } = await read();
    return problem.includes("disputed") || verifiedTo >= 20;
  };
  await expect.poll(isDecided, { timeout: 60_000 }).toBe(true);
  const { problem, verifiedTo } = await read();
  expect(problem).toContain("Blocks 20 to 20 are disputed");
  expect(verifiedTo).toBeLessThan(20);
}
