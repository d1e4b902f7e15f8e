import type { Devnet } from "@coinslot/devnet";
import { describe, expect, it } from "vitest";
import type { Indexer } from "../indexer.ts";
import { enginesByDay } from "../testing/engines.ts";
import { changing, logsOf, rangeOf, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { readStored } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

/** A node that leaves logs out of the answers for ranges. */
function lacking(isLost: (block: number, asked: { from: number; to: number }) => boolean) {
  return changing("eth_getLogs", (answer, call) => {
    const asked = rangeOf(call);
    if (asked === undefined) return answer;
    const result = logsOf(answer).filter(({ blockNumber }) => !isLost(Number(blockNumber), asked));
    return { ...answer, result };
  });
}

/** The amounts that are stored once all final blocks are verified. */
async function readVerified(indexer: Indexer, devnet: Devnet): Promise<bigint[]> {
  const final = Number(await devnet.client.getBlockNumber()) - finalDepth;
  const verifiedTo = async () => (await indexer.status()).chains[0]?.tokens[0]?.verifiedTo;
  await expect.poll(verifiedTo, { timeout: 60_000, interval: 50 }).toBe(final);
  return (await readStored(indexer, usdtOf(devnet))).map(({ amount }) => amount);
}

describe.each(enginesByDay)("answers without their last logs, on $engine", ({ createUrl }) => {
  it.each([1, 5])("hide no only transfer, of the last blocks: %s", async (lost) => {
    const devnet = await startUsedChain();
    const startBlock = Number(await devnet.client.getBlockNumber()) + 1;
    await devnet.mine(20 - lost);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 7n });
    await devnet.mine(finalDepth + lost - 1);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(lacking((block, { to }) => block > to - lost));
    const indexer = await start(devnet, proxy.url, { startBlock, maxBlocksPerRequest: 20 });
    expect(await readVerified(indexer, devnet)).toEqual([7n]);
  });

  it.each([
    ["after ranges are halved", { maxBlocksPerRequest: 100, before: 3, between: 37 }],
    ["beyond the largest range", { maxBlocksPerRequest: 20, before: 12, between: 17 }],
  ])("hide no transfer with a known one within reach, %s", async (_, sizes) => {
    const { maxBlocksPerRequest, before, between } = sizes;
    const devnet = await startUsedChain();
    const to = devnet.accounts.seller.address;
    const startBlock = Number(await devnet.client.getBlockNumber()) + 1;
    const hidden = startBlock + before;
    await devnet.mine(before);
    await devnet.mint({ to, amount: 7n });
    await devnet.mine(between);
    await devnet.mint({ to, amount: 1n });
    await devnet.mine(finalDepth);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(lacking((_, { from }) => from <= hidden));
    const indexer = await start(devnet, proxy.url, { startBlock, maxBlocksPerRequest });
    expect(await readVerified(indexer, devnet)).toEqual([7n, 1n]);
  });

  async function start(
    devnet: Devnet,
    rpcUrl: string,
    { startBlock, maxBlocksPerRequest }: { startBlock: number; maxBlocksPerRequest: number },
  ) {
    const tokens = [{ name: "usdt", address: devnet.token, startBlock, decimals: 6 }];
    const chain = { tokens, maxBlocksPerRequest, verifyAfterMs: 50 };
    return startFastIndexer({ rpcUrls: [rpcUrl], database: await createUrl(), chain });
  }
});
