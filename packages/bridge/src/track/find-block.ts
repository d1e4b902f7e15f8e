import type { PublicClient } from "viem";
import { askChain } from "../chains/ask-chain.ts";

/**
 * The number of the last block that is older than `timestamp` (Unix seconds), 0 if none is. The
 * search runs from the newest in growing steps, so a recent block takes few questions.
 */
export async function findBlockBefore(client: PublicClient, timestamp: bigint): Promise<bigint> {
  const isOlder = async (blockNumber: bigint) => {
    const block = await askChain("a block", client.getBlock({ blockNumber }));
    return block.timestamp < timestamp;
  };
  let young = await askChain("the newest block", client.getBlockNumber({ cacheTime: 0 }));
  let old = young;
  for (let step = 64n; old > 0n && !(await isOlder(old)); step *= 4n) {
    young = old;
    old = old > step ? old - step : 0n;
  }
  while (young - old > 1n) {
    const middle = (old + young) / 2n;
    if (await isOlder(middle)) old = middle;
    else young = middle;
  }
  return old;
}
