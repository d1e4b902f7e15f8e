import { describe, expect, it } from "vitest";
import { enginesByDay } from "../testing/engines.ts";
import { type Fault, logsOf, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectExact, expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

/** Hides the transfers of one block, in logs and in receipts. */
function hideBlock(number: number): Fault {
  const isThere = ({ blockNumber }: Record<string, unknown>) => Number(blockNumber) === number;
  return async ({ calls, forward, reply }) => {
    const answers = await forward();
    reply(
      answers.map((answer, index) => {
        const method = calls[index]?.method;
        const all = logsOf(answer);
        if (method === "eth_getLogs") {
          return { ...answer, result: all.filter((log) => !isThere(log)) };
        }
        if (method !== "eth_getBlockReceipts" || !all.some(isThere)) return answer;
        return { ...answer, result: all.map((receipt) => ({ ...receipt, logs: [] })) };
      }),
    );
  };
}

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
    second.set(hideBlock(hidden));
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
});
