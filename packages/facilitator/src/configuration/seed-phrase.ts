import { createHash } from "node:crypto";
import { english } from "viem/accounts";

const bitsPerWord = 11;
const wordNumbers = new Map(english.map((word, index) => [word, index]));

/**
 * Fault of a BIP-39 seed phrase of English words, as the rest of a sentence that begins with its
 * name. `undefined` when there is none. Words are named by their place only.
 */
export function findSeedPhraseProblem(phrase: string): string | undefined {
  const words = phrase.split(" ");
  if (![12, 15, 18, 21, 24].includes(words.length)) {
    return `has ${words.length} words, and must have 12, 15, 18, 21 or 24`;
  }
  const numbers = words.map((word) => wordNumbers.get(word));
  const unknown = numbers.flatMap((number, index) => (number === undefined ? [index + 1] : []));
  if (unknown.length > 0) {
    const faulty =
      unknown.length === 1
        ? `the word at place ${unknown[0]} is`
        : `the words at places ${unknown.join(", ")} are`;
    return `has a typing error: ${faulty} not in the English list of BIP-39`;
  }
  return hasChecksum(numbers)
    ? undefined
    : "does not fit its checksum: a word is wrong, or in the wrong place";
}

/** BIP-39: the last bits, one for each 32 of entropy, are the first ones of its SHA-256. */
function hasChecksum(numbers: readonly (number | undefined)[]): boolean {
  const bits = numbers.map((number = 0) => number.toString(2).padStart(bitsPerWord, "0")).join("");
  const entropyBits = Math.floor((bits.length * 32) / 33);
  const entropy = bits.slice(0, entropyBits).match(/.{8}/g) ?? [];
  const digest = createHash("sha256")
    .update(Uint8Array.from(entropy, (byte) => Number.parseInt(byte, 2)))
    .digest();
  const checksum = (digest[0] ?? 0).toString(2).padStart(8, "0");
  return checksum.startsWith(bits.slice(entropyBits));
}
