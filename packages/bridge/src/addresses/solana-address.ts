import { bytesToHex, type Hex } from "viem";
import { decodeBase58 } from "./base58.ts";

/** The 32 bytes of a Solana address; an error names the fault. */
export function parseSolanaAddress(text: string): Hex | Error {
  // 32 bytes take 32 to 44 characters; a bound, since longer texts would only cost time.
  if (text.length < 32 || text.length > 44) return new Error("has not 32 to 44 characters");
  const bytes = decodeBase58(text);
  if (bytes === undefined) return new Error("is not base58");
  return bytes.length === 32 ? bytesToHex(bytes) : new Error("is not 32 bytes");
}
