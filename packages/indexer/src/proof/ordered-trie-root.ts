import { type Hex, keccak256, toRlp } from "viem";

/** The root of a trie without entries: `keccak256(rlp(""))`. */
export const emptyTrieRoot: Hex =
  "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";

interface Entry {
  /** The key's half bytes. */
  nibbles: readonly number[];
  value: Uint8Array;
}

/** A node as it stands in its parent: itself, or its hash where it takes 32 bytes or more. */
type NodeReference = Uint8Array | NodeReference[];

/**
 * The root of the Merkle Patricia trie that holds a list, as in a block's `transactionsRoot` and
 * `receiptsRoot`. The key of each value is the RLP of its index (Ethereum yellow paper, section
 * 4.3.1 and appendix D).
 */
export function orderedTrieRoot(values: readonly Uint8Array[]): Hex {
  if (values.length === 0) return emptyTrieRoot;
  const entries = values.map(
    (value, index): Entry => ({ nibbles: nibblesOf(indexKey(index)), value }),
  );
  return keccak256(toRlp(buildNode(entries, 0), "bytes"));
}

/** The node of all entries, which share their first `depth` nibbles. */
function buildNode(entries: readonly Entry[], depth: number): NodeReference[] {
  const [first] = entries;
  if (first === undefined) throw new RangeError("A trie node without entries");
  if (entries.length === 1) return [encodePath(first.nibbles.slice(depth), true), first.value];
  const shared = sharedLength(entries, depth);
  if (shared > 0) {
    const path = encodePath(first.nibbles.slice(depth, depth + shared), false);
    return [path, referTo(buildNode(entries, depth + shared))];
  }
  const ending = entries.find(({ nibbles }) => nibbles.length === depth);
  const children = Array.from({ length: 16 }, (_, nibble): NodeReference => {
    const below = entries.filter(({ nibbles }) => nibbles[depth] === nibble);
    return below.length === 0 ? new Uint8Array() : referTo(buildNode(below, depth + 1));
  });
  return [...children, ending?.value ?? new Uint8Array()];
}

function referTo(node: NodeReference[]): NodeReference {
  const encoded = toRlp(node, "bytes");
  return encoded.length < 32 ? node : keccak256(encoded, "bytes");
}

/** Number of nibbles after `depth` that all entries share. */
function sharedLength(entries: readonly Entry[], depth: number): number {
  const [first] = entries;
  let length = 0;
  while (
    first !== undefined &&
    depth + length < first.nibbles.length &&
    entries.every(({ nibbles }) => nibbles[depth + length] === first.nibbles[depth + length])
  )
    length += 1;
  return length;
}

/** The compact form of a path: a flag for a leaf, and one for an odd number of nibbles. */
function encodePath(nibbles: readonly number[], isLeaf: boolean): Uint8Array {
  const flag = isLeaf ? 2 : 0;
  const padded = nibbles.length % 2 === 1 ? [flag + 1, ...nibbles] : [flag, 0, ...nibbles];
  const bytes = new Uint8Array(padded.length / 2);
  for (let index = 0; index < bytes.length; index++)
    bytes[index] = ((padded[2 * index] ?? 0) << 4) | (padded[2 * index + 1] ?? 0);
  return bytes;
}

function nibblesOf(key: Uint8Array): number[] {
  return [...key].flatMap((byte) => [byte >> 4, byte & 15]);
}

/** The RLP of an index: zero is the empty string. */
function indexKey(index: number): Uint8Array {
  if (index === 0) return toRlp(new Uint8Array(), "bytes");
  const digits = index.toString(16);
  return toRlp(`0x${digits.padStart(digits.length + (digits.length % 2), "0")}`, "bytes");
}
