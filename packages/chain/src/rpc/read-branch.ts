import {
  type BlockHeader,
  blockByHash,
  blockByNumber,
  parseBlockHeader,
} from "../heads/block-header.ts";
import type { BlockWindow } from "../heads/block-window.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import { RpcUnavailableError } from "./rpc-errors.ts";
import type { RpcRequester } from "./rpc-requester.ts";

/**
 * The blocks from the window's chain up to `latest`, oldest first: the first one's parent is in the
 * window. Undefined without a common ancestor in reach: more than `limit` blocks were missed, or
 * the chain was replaced from below the window.
 *
 * Throws `RpcUnavailableError` where the endpoint contradicts itself, e.g. because its chain
 * changed during the read. Another endpoint, or the next poll, then gives a consistent picture.
 */
export async function readBranch(
  endpoint: RpcRequester,
  window: BlockWindow,
  latest: BlockHeader,
  limit: number,
): Promise<BlockHeader[] | undefined> {
  const head = window.head();
  const tail = window.tail();
  if (!head || !tail || latest.number - head.number > BigInt(limit)) return undefined;
  const branch = [latest];
  // Missed blocks are most likely on top of the window's head: read in one request, by number.
  const numbers: bigint[] = [];
  for (let number = head.number + 1n; number < latest.number; number += 1n) numbers.push(number);
  for (const block of (await readBlocks(endpoint, numbers.map(blockByNumber))).reverse()) {
    if (branch[0]?.parentHash !== block.hash) throw contradiction(endpoint, block.number);
    branch.unshift(block);
  }
  // The rest down to the common ancestor is a reorganisation, followed parent by parent.
  for (let oldest = branch[0]; oldest && !window.has(oldest.parentHash); oldest = branch[0]) {
    if (oldest.number <= tail.number) return undefined;
    const parent = await readBlock(endpoint, blockByHash(oldest.parentHash));
    if (parent.hash !== oldest.parentHash || parent.number !== oldest.number - 1n)
      throw contradiction(endpoint, oldest.number);
    branch.unshift(parent);
  }
  return branch;
}

/** One block that must exist. Throws `RpcUnavailableError` when it does not, or is no block. */
export async function readBlock(endpoint: RpcRequester, call: RpcCall): Promise<BlockHeader> {
  return toHeader(endpoint, call, await endpoint.request(call));
}

async function readBlocks(
  endpoint: RpcRequester,
  calls: readonly RpcCall[],
): Promise<BlockHeader[]> {
  const outcomes = await endpoint.requestMany(calls);
  return calls.map((call, index) => {
    const outcome = outcomes[index];
    if (outcome && !outcome.ok) throw outcome.error;
    return toHeader(endpoint, call, outcome?.result);
  });
}

function toHeader(endpoint: RpcRequester, call: RpcCall, result: unknown): BlockHeader {
  const header = parseBlockHeader(result);
  if (header) return header;
  throw unavailable(endpoint, `${call.method}(${call.params?.[0]}) with a block`);
}

function contradiction(endpoint: RpcRequester, number: bigint) {
  return unavailable(endpoint, `blocks around ${number} that belong together`);
}

function unavailable({ chainId }: RpcRequester, subject: string) {
  return new RpcUnavailableError({ chainId, subject, failures: [], retryAfterMs: 0 });
}
