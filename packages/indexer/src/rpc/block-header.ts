import {
  blockByHash,
  blockByNumber,
  blockHeaderSchema,
  headerIn,
  type RpcEndpointHandle,
  type RpcOutcome,
} from "@coinslot/chain";
import * as z from "zod";
import { emptyTrieRoot } from "../proof/ordered-trie-root.ts";
import type { BlockId } from "../store/block-id.ts";
import { maxBlockTime } from "../store/bound-times.ts";

/** A block, and its time. */
export interface TimedBlock extends BlockId {
  timestampMs: number;
}

/** The header that proves a block's logs. Hex is in lowercase. */
export interface BlockHeader extends TimedBlock {
  parentHash: string;
  /** Undefined where the node omits it, or returns zeros, as some chains do for all blocks. */
  logsBloom: string | undefined;
  /** Root hash of the block's receipts; undefined where the node omits it. */
  receiptsRoot: string | undefined;
  /** Undefined where the node omits the transactions. */
  transactionCount: number | undefined;
  /** True if the header shows a block without transactions. */
  isEmpty: boolean;
}

/** A block with a time beyond all dates is made up: the next endpoint is asked. */
export const datedHeaderSchema = blockHeaderSchema.extend({
  timestamp: blockHeaderSchema.shape.timestamp.refine((seconds) => seconds <= maxBlockTime),
});

const headerSchema = datedHeaderSchema.extend({
  logsBloom: z
    .string()
    .regex(/^0x[0-9a-f]{512}$/i)
    .nullish()
    .catch(undefined),
  receiptsRoot: blockHeaderSchema.shape.hash.nullish().catch(undefined),
  transactions: z.array(z.unknown()).optional().catch(undefined),
});

/** Undefined where the answer is null or no block. */
export function parseHeader(result: unknown): BlockHeader | undefined {
  const { data } = headerSchema.safeParse(result);
  if (data === undefined) return undefined;
  const { number, hash, parentHash, timestamp, logsBloom, receiptsRoot, transactions } = data;
  const hasNoBloom = logsBloom == null || /^0x0+$/.test(logsBloom);
  return {
    number: Number(number),
    hash,
    parentHash,
    timestampMs: Number(timestamp) * 1000,
    logsBloom: hasNoBloom ? undefined : logsBloom,
    receiptsRoot: receiptsRoot ?? undefined,
    transactionCount: transactions?.length,
    isEmpty: transactions?.length === 0 && receiptsRoot === emptyTrieRoot,
  };
}

/**
 * The header in one outcome, of the block with this number, hash or tag. Throws the endpoint's
 * error, or one that it does not have that block.
 */
export function headerOf(
  endpoint: RpcEndpointHandle,
  outcome: RpcOutcome | undefined,
  block: number | string,
): BlockHeader {
  return headerIn(endpoint, outcome, { block, parse: parseHeader });
}

/** Blocks by their numbers, as one endpoint sees them at this moment. */
export async function readHeaders(
  endpoint: RpcEndpointHandle,
  numbers: readonly number[],
): Promise<TimedBlock[]> {
  if (numbers.length === 0) return [];
  const calls = numbers.map((number) => blockByNumber(BigInt(number)));
  const outcomes = await endpoint.requestMany(calls);
  return numbers.map((number, index) => headerOf(endpoint, outcomes[index], number));
}

/** Asks for a block by a hash in lowercase. */
export function headerByHash(blockHash: string) {
  return blockByHash(`0x${blockHash.slice(2)}`);
}
