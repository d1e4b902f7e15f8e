import { type Hex, keccak256, toRlp } from "viem";
import * as z from "zod";

const bytes = z.string().regex(/^0x([0-9a-f]{2})*$/i);
const quantity = z.string().regex(/^0x[0-9a-f]+$/i);

/**
 * The fields of a header that every block has, in their order (Ethereum yellow paper, section 4.3).
 */
const always = {
  parentHash: bytes,
  sha3Uncles: bytes,
  miner: bytes,
  stateRoot: bytes,
  transactionsRoot: bytes,
  receiptsRoot: bytes,
  logsBloom: bytes,
  difficulty: quantity,
  number: quantity,
  gasLimit: quantity,
  gasUsed: quantity,
  timestamp: quantity,
  extraData: bytes,
  mixHash: bytes,
  nonce: bytes,
};
/** Fields that came later, each behind the one before: EIP-1559, 4895, 4844 (two), 4788, 7685. */
const later = {
  baseFeePerGas: quantity.optional(),
  withdrawalsRoot: bytes.optional(),
  blobGasUsed: quantity.optional(),
  excessBlobGas: quantity.optional(),
  parentBeaconBlockRoot: bytes.optional(),
  requestsHash: bytes.optional(),
};
const headerSchema = z.object({ ...always, ...later, hash: bytes });
const names = [...Object.keys(always), ...Object.keys(later)];
const quantities = new Set(
  Object.entries({ ...always, ...later }).flatMap(([name, schema]) =>
    schema === quantity || (schema instanceof z.ZodOptional && schema.unwrap() === quantity)
      ? [name]
      : [],
  ),
);

/**
 * Returns whether the fields of a block, as a node returns it, make its hash. Then nothing in its
 * header is invented for this hash. Some chains make their hashes in another way, so a block
 * without it proves nothing.
 */
export function hashesToItsName(block: unknown): boolean {
  const { data } = headerSchema.safeParse(block);
  if (data === undefined) return false;
  const values = new Map<string, string | undefined>(Object.entries(data));
  const fields = names.flatMap((name): Hex[] => {
    const value = values.get(name);
    if (value === undefined) return [];
    return [quantities.has(name) ? withoutZeros(value) : `0x${value.slice(2)}`];
  });
  return keccak256(toRlp(fields)) === data.hash.toLowerCase();
}

/** A number as RLP has it: without leading zeros, and zero is the empty string. */
function withoutZeros(value: string): Hex {
  const digits = value.slice(2).replace(/^0+/, "");
  return `0x${digits.padStart(digits.length + (digits.length % 2), "0")}`;
}
