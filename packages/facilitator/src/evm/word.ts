import type { Hex } from "@coinslot/protocol";

/** An unsigned integer as one ABI word: 64 hex digits without `0x`. */
export function uintWord(value: bigint | number): string {
  return value.toString(16).padStart(64, "0");
}

/** An address, or 32 bytes, as one ABI word: 64 hex digits without `0x`. */
export function hexWord(value: Hex): string {
  return value.slice(2).padStart(64, "0");
}

/** Bytes as the ABI writes them: their length, then themselves, filled up to whole words. */
export function bytesWords(value: Hex): string {
  const digits = value.slice(2);
  return uintWord(digits.length / 2) + digits.padEnd(Math.ceil(digits.length / 64) * 64, "0");
}
