import { type Hex, keccak256 } from "viem";

const bloomBytes = 256;

/**
 * The bits that an address or topic sets in the bloom filter of a block's header. They are three of
 * 2048, taken from its hash (Ethereum yellow paper, section 4.3.1).
 */
function bitsOf(value: Hex): readonly number[] {
  const hash = keccak256(value);
  return [0, 4, 8].map((start) => Number.parseInt(hash.slice(2 + start, 6 + start), 16) & 2047);
}

/** Creates a test whether a block may hold logs of all `values`. No is certain; yes is not. */
export function createBloomTest(values: readonly Hex[]): (bloom: string) => boolean {
  const bits = values.flatMap(bitsOf);
  return (bloom) =>
    bits.every((bit) => {
      // The lowest bit is the last; four to a digit.
      const digit = bloom.charAt(bloom.length - 1 - (bit >> 2));
      return ((Number.parseInt(digit, 16) >> (bit & 3)) & 1) === 1;
    });
}

/** The bloom filter of logs, as in a receipt. */
export function computeLogsBloom(logs: readonly { address: Hex; topics: readonly Hex[] }[]): Hex {
  const bytes = new Uint8Array(bloomBytes);
  for (const value of new Set(logs.flatMap(({ address, topics }) => [address, ...topics]))) {
    for (const index of bitsOf(value)) {
      const place = bloomBytes - 1 - (index >> 3);
      bytes[place] = (bytes[place] ?? 0) | (1 << (index & 7));
    }
  }
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
