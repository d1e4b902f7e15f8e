import type { Hash } from "viem";
import * as z from "zod";
import type { RpcCall } from "../rpc/rpc-envelope.ts";

/** Identity of a block, and the link to its parent. */
export interface BlockHeader {
  number: bigint;
  hash: Hash;
  parentHash: Hash;
  /** Seconds since the Unix epoch, by the block's proposer. */
  timestamp: bigint;
  /** Undefined on a chain without EIP-1559, and where the node has no quantity there. */
  baseFeePerGas: bigint | undefined;
}

const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);
/** A count or a time that a JavaScript number holds: 13 hex digits are 52 bits. */
const safeQuantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,13}$/i)
  .transform(BigInt);
const hash = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform((text): Hash => `0x${text.slice(2).toLowerCase()}`);

/** A block as a node returns it, without its transactions. Hashes become lowercase. */
export const blockHeaderSchema = z.object({
  number: safeQuantity,
  hash,
  parentHash: hash,
  timestamp: safeQuantity,
  // Beside the identity of a block: a form of its own for the fee costs no block.
  baseFeePerGas: quantity
    .nullish()
    .catch(undefined)
    .transform((fee) => fee ?? undefined),
});

/**
 * The header in an answer to `eth_getBlockBy…`; undefined where the answer is null, or no block.
 */
export function parseBlockHeader(result: unknown): BlockHeader | undefined {
  return blockHeaderSchema.safeParse(result).data;
}

/** Asks for a block by its number or tag, without its transactions. */
export function blockByNumber(block: bigint | "latest" | "finalized" | "safe"): RpcCall {
  const parameter = typeof block === "bigint" ? `0x${block.toString(16)}` : block;
  return {
    method: "eth_getBlockByNumber",
    params: [parameter, false],
    isAnswer: block === "latest" ? isHeader : isHeaderOrNone,
  };
}

/** Asks for a block by its hash, without its transactions. */
export function blockByHash(blockHash: Hash): RpcCall {
  return { method: "eth_getBlockByHash", params: [blockHash, false], isAnswer: isHeaderOrNone };
}

function isHeader(result: unknown): boolean {
  return parseBlockHeader(result) !== undefined;
}

function isHeaderOrNone(result: unknown): boolean {
  return result === null || isHeader(result);
}
