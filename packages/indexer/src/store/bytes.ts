import type { Hex } from "viem";

/** The bytes of a hex text that begins with `0x`. */
export function bytesOfHex(hex: string): Uint8Array {
  return Buffer.from(hex.slice(2), "hex");
}

export function hexOfBytes(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;
}
