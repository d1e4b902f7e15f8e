import { base58 } from "@scure/base";

/** Decodes base58 (Bitcoin's alphabet); `undefined` if a character is not in it. */
export function decodeBase58(text: string): Uint8Array | undefined {
  try {
    return base58.decode(text);
  } catch {
    return undefined;
  }
}
