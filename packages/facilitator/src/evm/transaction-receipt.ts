import type { RpcCall } from "@coinslot/chain";
import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";

/** One event that a transaction left behind. Hex in lower case. */
export interface ReceiptLog {
  address: Address;
  topics: readonly Hex[];
  data: Hex;
}

/** A transaction receipt, as far as payments need it. */
export interface TransactionReceipt {
  transactionHash: Hex;
  blockNumber: number;
  blockHash: Hex;
  isSuccess: boolean;
  gasUsed: bigint;
  /** In the order in which they were emitted. */
  logs: readonly ReceiptLog[];
}

const hex = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]).transform(toLowerHex);
const quantity = z.string().regex(/^0x[0-9a-f]{1,64}$/i);

const receiptSchema = z.object({
  transactionHash: hex,
  blockNumber: quantity.transform(Number),
  blockHash: hex,
  status: quantity,
  gasUsed: quantity.transform(BigInt),
  logs: z.array(z.object({ address: hex, topics: z.array(hex), data: hex })),
});

const pendingSchema = z.object({ blockNumber: z.null() });

/** Asks for the receipt of a transaction. */
export function receiptCall(hash: Hex): RpcCall {
  return { method: "eth_getTransactionReceipt", params: [hash] };
}

/**
 * Reads the answer to `receiptCall`. `undefined` while no block holds the transaction. Some nodes
 * return a receipt without a block for the pool: that is `undefined` too.
 *
 * @throws ZodError on anything else.
 */
export function parseReceipt(result: unknown): TransactionReceipt | undefined {
  if (result === null || result === undefined) return undefined;
  if (pendingSchema.safeParse(result).success) return undefined;
  const { status, ...receipt } = receiptSchema.parse(result);
  return { isSuccess: BigInt(status) === 1n, ...receipt };
}
