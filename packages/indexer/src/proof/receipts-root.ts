import { concatBytes, type Hex, toRlp } from "viem";
import * as z from "zod";
import { computeLogsBloom } from "./logs-bloom.ts";
import { orderedTrieRoot } from "./ordered-trie-root.ts";

const hex = z
  .string()
  .regex(/^0x([0-9a-f]{2})*$/i)
  .transform((text): Hex => `0x${text.slice(2).toLowerCase()}`);
const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,16}$/i)
  .transform((text) => BigInt(text));

const receiptSchema = z.object({
  /** Undefined before transactions had types (EIP-2718). */
  type: quantity.optional(),
  status: quantity.nullish(),
  /** Instead of the status, before EIP-658. */
  root: hex.nullish(),
  cumulativeGasUsed: quantity,
  logsBloom: hex,
  logs: z.array(z.object({ address: hex, topics: z.array(hex), data: hex })),
});
const receiptsSchema = z.array(receiptSchema);
type Receipt = z.output<typeof receiptSchema>;

/**
 * The transaction types whose receipts are `[status, cumulativeGasUsed, logsBloom, logs]`: legacy,
 * EIP-2930, EIP-1559, EIP-4844, EIP-7702. Chains have types of their own with other fields, which
 * stay unproven.
 */
const knownTypes: ReadonlySet<bigint> = new Set([0n, 1n, 2n, 3n, 4n]);

/** Verdict on the receipts of a block, by the root that its header commits to. */
export type ReceiptsVerdict =
  | { kind: "proven" }
  /** Root mismatch: a list of another block, or a chain with its own computation of the root. */
  | { kind: "different" }
  /** No statement: a receipt of an unknown form. */
  | { kind: "unknown-form"; reason: string };

/**
 * Compares receipts, as `eth_getBlockReceipts` returns them, with the `receiptsRoot` of their
 * block. Some nodes return a bloom filter of zeros for each receipt, while the root commits to the
 * real filters. Tries both.
 */
export function verifyReceipts(receipts: unknown, receiptsRoot: string): ReceiptsVerdict {
  const { data } = receiptsSchema.safeParse(receipts);
  if (data === undefined) return { kind: "unknown-form", reason: "receipts without their fields" };
  const odd = data.find(({ type = 0n }) => !knownTypes.has(type));
  if (odd !== undefined)
    return { kind: "unknown-form", reason: `a receipt of the unknown type ${odd.type}` };
  const isRoot = (blooms: (receipt: Receipt) => Hex) =>
    orderedTrieRoot(data.map((receipt) => encodeReceipt(receipt, blooms(receipt)))) ===
    receiptsRoot.toLowerCase();
  const isProven =
    isRoot(({ logsBloom }) => logsBloom) || isRoot(({ logs }) => computeLogsBloom(logs));
  return { kind: isProven ? "proven" : "different" };
}

/** EIP-2718: the type before the list, and nothing before that of a legacy transaction. */
function encodeReceipt(receipt: Receipt, logsBloom: Hex): Uint8Array {
  const { type = 0n, status, root, cumulativeGasUsed, logs } = receipt;
  const list = toRlp(
    [
      root ?? toBytes(status ?? 0n),
      toBytes(cumulativeGasUsed),
      logsBloom,
      logs.map(({ address, topics, data }) => [address, topics, data]),
    ],
    "bytes",
  );
  return type === 0n ? list : concatBytes([Uint8Array.of(Number(type)), list]);
}

/** A number without leading zeros; zero is the empty string. */
function toBytes(value: bigint): Hex {
  if (value === 0n) return "0x";
  const digits = value.toString(16);
  return `0x${digits.padStart(digits.length + (digits.length % 2), "0")}`;
}
