import { blockByNumber, parseBlockHeader, type RpcRequester } from "@coinslot/chain";

/** Remembers the final block that was read last: many payments are compared with its time. */
export interface FinalBlockReader {
  finalBlock: { number: bigint; timestamp: bigint } | undefined;
}

/**
 * The final block at this height; `undefined` where there is none yet. Each is asked for once.
 *
 * @throws RpcError when the chain is unreachable.
 */
export async function readFinalBlock(
  reader: FinalBlockReader,
  rpc: RpcRequester,
  height: bigint,
): Promise<{ timestamp: bigint } | undefined> {
  if (height < 0n) return undefined;
  if (reader.finalBlock?.number === height) return reader.finalBlock;
  const header = parseBlockHeader(await rpc.request(blockByNumber(height)));
  if (header !== undefined) reader.finalBlock = { number: height, timestamp: header.timestamp };
  return header;
}
