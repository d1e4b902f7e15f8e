import { isAmount } from "@coinslot/protocol";

/** Sum of the parts that a handler charges, up to the price. */
export interface ChargedAmount {
  /**
   * Adds a part.
   *
   * @returns false where it exceeds what is left: nothing is added
   * @throws RangeError where it is no whole amount
   */
  add(part: unknown): boolean;
  /** `undefined`: the handler has charged no part. */
  sum(): bigint | undefined;
}

/** Creates an empty sum. */
export function createChargedAmount(price: bigint): ChargedAmount {
  let sum: bigint | undefined;
  return {
    add(part) {
      const next = (sum ?? 0n) + readPart(part);
      if (next > price) return false;
      sum = next;
      return true;
    },
    sum: () => sum,
  };
}

/** Sellers in plain JavaScript may pass any value. A number is refused: it would round. */
function readPart(part: unknown): bigint {
  if (typeof part === "bigint" && part >= 0n) return part;
  if (typeof part === "string" && isAmount(part)) return BigInt(part);
  throw new RangeError(
    "A charge is a whole number of the token's smallest unit: a bigint, or a decimal string",
  );
}
