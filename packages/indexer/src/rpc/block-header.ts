import {
  blockByHash,
  blockByNumber,
  type RpcEndpointHandle,
  type RpcOutcome,
} from "@coinslot/chain";
import * as z from "zod";
import { emptyTrieRoot } from "../proof/ordered-trie-root.ts";
import { endpointProblem } from "./endpoint-problem.ts";

/** The fields of a block that the indexer needs. Hex is in lowercase. */
export interface BlockHeader {
  number: number;
  hash: string;
  parentHash: string;
  timestampMs: number;
  /** Undefined where the node omits it, or returns zeros, as some chains do for all blocks. */
  logsBloom: string | undefined;
  /** Root hash of the block's receipts; undefined where the node omits it. */
  receiptsRoot: string | undefined;
  /** Whether the header shows a block without transactions. */
  isEmpty: boolean;
}

const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,13}$/i)
  .transform(Number);
const hash = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform((text): `0x${string}` => `0x${text.slice(2).toLowerCase()}`);
const headerSchema = z.object({
  number: quantity,
  hash,
  parentHash: hash,
  timestamp: quantity,
  logsBloom: z
    .string()
    .regex(/^0x[0-9a-f]{512}$/i)
    .nullish()
    .catch(undefined),
  receiptsRoot: hash.nullish().catch(undefined),
  transactions: z.array(z.unknown()).optional().catch(undefined),
});

/** Undefined where the answer is null or no block. */
export function parseHeader(result: unknown): BlockHeader | undefined {
  const { data } = headerSchema.safeParse(result);
  if (data === undefined) return undefined;
  const { timestamp, logsBloom, receiptsRoot, transactions, ...ids } = data;
  const hasNoBloom = logsBloom == null || /^0x0+$/.test(logsBloom);
  return {
    ...ids,
    timestampMs: timestamp * 1000,
    logsBloom: hasNoBloom ? undefined : logsBloom,
    receiptsRoot: receiptsRoot ?? undefined,
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
  if (outcome?.ok === false) throw outcome.error;
  const header = parseHeader(outcome?.result);
  if (header === undefined || ![header.number, header.hash, "latest"].includes(block))
    throw endpointProblem(endpoint, { kind: "behind", details: `it does not have block ${block}` });
  return header;
}

/** The headers of blocks by their numbers, as one endpoint sees them at this moment. */
export async function readHeaders(
  endpoint: RpcEndpointHandle,
  numbers: readonly number[],
): Promise<BlockHeader[]> {
  const calls = numbers.map((number) => blockByNumber(BigInt(number)));
  const outcomes = await endpoint.requestMany(calls);
  return numbers.map((number, index) => headerOf(endpoint, outcomes[index], number));
}

/** Asks for a block by a hash in lowercase. */
export function headerByHash(blockHash: string) {
  return blockByHash(`0x${blockHash.slice(2)}`);
}
