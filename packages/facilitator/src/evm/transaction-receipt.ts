import type { RpcCall, RpcOutcome } from "@coinslot/chain";
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
  /** Its place in the block, where the node returns it. */
  transactionIndex?: number | undefined;
  isSuccess: boolean;
  gasUsed: bigint;
  /** Wei that its sender paid for it; `undefined` where the node returns no price. */
  gasCost?: bigint | undefined;
  /** In the order in which they were emitted. */
  logs: readonly ReceiptLog[];
}

const hex = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]).transform(toLowerHex);
const quantity = z.string().regex(/^0x[0-9a-f]{1,64}$/i);
/** A number of a block or of gas that a JavaScript number and a column hold: 52 bits. */
const safeQuantity = z.string().regex(/^0x[0-9a-f]{1,13}$/i);

/** Reads a `transactionIndex`. Blame alone rests on it, so a malformed one counts as missing. */
export const placeInBlock = quantity.transform(Number).optional().catch(undefined);

/** The books alone rest on it, so a malformed one counts as missing. */
const price = quantity.transform(BigInt).optional().catch(undefined);

const receiptSchema = z.object({
  transactionHash: hex,
  blockNumber: safeQuantity.transform(Number),
  blockHash: hex,
  transactionIndex: placeInBlock,
  status: quantity,
  gasUsed: safeQuantity.transform(BigInt),
  effectiveGasPrice: price,
  // Of rollups by the OP Stack: the fee of the chain below, on top of the gas.
  l1Fee: price,
  logs: z.array(z.object({ address: hex, topics: z.array(hex), data: hex })),
});

const pendingSchema = z.object({ blockNumber: z.null() });

/** Asks for the receipt of a transaction. One of another is no answer. */
export function receiptCall(hash: Hex): RpcCall {
  const isAnswer = (result: unknown) => {
    const { fault } = readReceipt(hash, { ok: true, result, endpoint: 0, failures: [] });
    return fault === undefined;
  };
  return { method: "eth_getTransactionReceipt", params: [hash], isAnswer };
}

/**
 * Reads a result of `receiptCall`. `undefined` while no block holds the transaction. Some nodes
 * return a receipt without a block for the pool: that is `undefined` too.
 *
 * @throws ZodError on anything else.
 */
function parseReceipt(result: unknown): TransactionReceipt | undefined {
  if (result === null || result === undefined) return undefined;
  if (pendingSchema.safeParse(result).success) return undefined;
  const { status, effectiveGasPrice, l1Fee = 0n, ...receipt } = receiptSchema.parse(result);
  const gasCost =
    effectiveGasPrice === undefined ? undefined : receipt.gasUsed * effectiveGasPrice + l1Fee;
  return { isSuccess: BigInt(status) === 1n, ...receipt, gasCost };
}

/**
 * The receipt in one of many answers to `receiptCall`; `undefined` while no block holds the
 * transaction. `fault`: a node returns an error, a malformed receipt, or one of another
 * transaction. Then nothing is known of this transaction, and the answers about others still count.
 */
export function readReceipt(
  hash: Hex,
  outcome: RpcOutcome | undefined,
): { receipt?: TransactionReceipt | undefined; fault?: Error } {
  if (outcome?.ok === false) return { fault: outcome.error };
  try {
    const receipt = parseReceipt(outcome?.result);
    if (receipt === undefined || receipt.transactionHash === hash) return { receipt };
    const message = `A node returned ${receipt.transactionHash} for ${hash}`;
    return { fault: new z.ZodError([{ code: "custom", path: ["transactionHash"], message }]) };
  } catch (error) {
    if (error instanceof z.ZodError) return { fault: error };
    throw error;
  }
}
