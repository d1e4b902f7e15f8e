import { blockByNumber, parseBlockHeader, type RpcRequester } from "@coinslot/chain";
import type { BlockId } from "./read-channels.ts";

/** The block at a height; `undefined` where the node has none yet. */
export async function readBlock(rpc: RpcRequester, height: number): Promise<BlockId | undefined> {
  const header = parseBlockHeader(await rpc.request(blockByNumber(BigInt(height))));
  return header && { number: Number(header.number), hash: header.hash };
}
