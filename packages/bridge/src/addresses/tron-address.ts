import { bytesToHex, type Hex, pad, sha256 } from "viem";
import { decodeBase58 } from "./base58.ts";

const mainnetPrefix = 0x41;

/**
 * The 20 bytes of a TRON address, in 32. The address's prefix 0x41 is dropped: contracts do not see
 * it. An error names the fault.
 */
export function parseTronAddress(text: string): Hex | Error {
  if (text.length !== 34) return new Error("has not 34 characters");
  const bytes = decodeBase58(text);
  if (bytes === undefined) return new Error("is not base58");
  if (bytes.length !== 25) return new Error("is not 25 bytes");
  const checked = bytes.subarray(0, 21);
  const checksum = sha256(sha256(checked, "bytes"), "bytes").subarray(0, 4);
  if (bytesToHex(checksum) !== bytesToHex(bytes.subarray(21))) {
    return new Error("does not fit its checksum");
  }
  if (bytes[0] !== mainnetPrefix) return new Error("is not an account of TRON");
  return pad(bytesToHex(checked.subarray(1)), { size: 32 });
}
