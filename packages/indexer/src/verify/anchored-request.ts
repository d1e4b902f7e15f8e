import { blockByNumber, type RpcEndpointHandle, type RpcOutcome } from "@coinslot/chain";
import {
  type BlockReceipts,
  type ReceiptsQuestion,
  receiptsCalls,
  receiptsOf,
} from "../proof/read-receipts.ts";
import { type BlockHeader, headerOf } from "../rpc/block-header.ts";
import { endpointProblem } from "../rpc/endpoint-problem.ts";
import type { BlockId } from "../store/block-id.ts";

/** The arguments of one call, as an endpoint takes them. */
type RpcCall = Parameters<RpcEndpointHandle["requestMany"]>[0][number];

/**
 * Sends calls together with a question for a block of ours. Blocks are asked for by number, and a gateway may give each
 * request to another node, or the chain may change in between: an answer of a node that does not have that block is
 * thrown away.
 */
export async function requestOnChainOf(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { calls, minBlock, signal }: { calls: readonly RpcCall[]; minBlock: number; signal: AbortSignal },
): Promise<readonly (RpcOutcome | undefined)[]> {
  const [anchored, ...outcomes] = await endpoint.requestMany(
    [blockByNumber(BigInt(anchor.number)), ...calls],
    { minBlock: BigInt(Math.max(minBlock, anchor.number)), signal },
  );
  if (headerOf(endpoint, anchored, anchor.number).hash !== anchor.hash)
    throw endpointProblem(endpoint, {
      kind: "behind",
      details: `its block ${anchor.number} is another one: it is on a fork`,
    });
  return outcomes;
}

/** Reads a block by its receipts, at a node that has the anchor. */
export async function readReceiptsOnChainOf(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { block, evidence, signal }: ReceiptsQuestion & { block: number; signal: AbortSignal },
): Promise<BlockReceipts> {
  const calls = receiptsCalls(block);
  const outcomes = await requestOnChainOf(endpoint, anchor, { calls, minBlock: block, signal });
  return receiptsOf(endpoint, { block, evidence }, outcomes);
}

/** Reads headers by their numbers, at a node that has the anchor. */
export async function readHeadersOnChainOf(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { blocks, signal }: { blocks: readonly number[]; signal: AbortSignal },
): Promise<BlockHeader[]> {
  const calls = blocks.map((number) => blockByNumber(BigInt(number)));
  const minBlock = Math.max(...blocks);
  const outcomes = await requestOnChainOf(endpoint, anchor, { calls, minBlock, signal });
  return blocks.map((number, index) => headerOf(endpoint, outcomes[index], number));
}

/** Asks once more for the hashes of blocks. Throws where one is another than before. */
export async function confirmHashes(
  endpoint: RpcEndpointHandle,
  anchor: BlockId,
  { blocks, signal }: { blocks: readonly BlockId[]; signal: AbortSignal },
): Promise<void> {
  const numbers = blocks.map(({ number }) => number);
  const headers = await readHeadersOnChainOf(endpoint, anchor, { blocks: numbers, signal });
  for (const [index, { number, hash }] of blocks.entries())
    if (headers[index]?.hash !== hash)
      throw endpointProblem(endpoint, {
        kind: "behind",
        details: `its block ${number} is another one each time`,
      });
}
