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
  /** Undefined on a chain without EIP-1559. */
  baseFeePerGas: bigint | undefined;
}

const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform((text) => BigInt(text));
const hash = z.templateLiteral(["0x", z.string().regex(/[0-9a-f]{64}/i)]);

const blockHeaderSchema = z.object({
  number: quantity,
  hash,
  parentHash: hash,
  timestamp: quantity,
  baseFeePerGas: quantity.nullish().transform((fee) => fee ?? undefined),
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
  return { method: "eth_getBlockByNumber", params: [parameter, false] };
}

/** Asks for a block by its hash, without its transactions. */
export function blockByHash(blockHash: Hash): RpcCall {
  return { method: "eth_getBlockByHash", params: [blockHash, false] };
}
