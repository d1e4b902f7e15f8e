import { blockByNumber, parseBlockHeader, type RpcRequester } from "@coinslot/chain";
import type { BlockId } from "./read-channels.ts";

/** The block at a height; `undefined` where the node has none yet. */
export async function readBlock(rpc: RpcRequester, height: number): Promise<BlockId | undefined> {
  return toBlockId(await rpc.request(blockByNumber(BigInt(height))));
}

/**
 * The blocks at some heights, in one batch. One that cannot be read is left out, and holds up no
 * other.
 *
 * @throws what is no fault of a node
 */
export async function readBlocks(
  rpc: RpcRequester,
  heights: Iterable<number>,
): Promise<Map<number, BlockId | undefined>> {
  const asked = [...new Set(heights)];
  const blocks = new Map<number, BlockId | undefined>();
  if (asked.length === 0) return blocks;
  const outcomes = await rpc.requestMany(asked.map((height) => blockByNumber(BigInt(height))));
  for (const [index, height] of asked.entries()) {
    const outcome = outcomes[index];
    if (outcome?.ok) blocks.set(height, toBlockId(outcome.result));
  }
  return blocks;
}

function toBlockId(answer: unknown): BlockId | undefined {
  const header = parseBlockHeader(answer);
  return header && { number: Number(header.number), hash: header.hash };
}
