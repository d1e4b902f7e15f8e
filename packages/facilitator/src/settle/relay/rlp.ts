/** Bytes, or a list of such, as Ethereum writes them in RLP. */
type RlpItem = Uint8Array | readonly RlpItem[];

/** Recursive Length Prefix, as the Yellow Paper's appendix B has it. */
export function encodeRlp(item: RlpItem): Buffer {
  if (isBytes(item)) {
    const [first] = item;
    if (item.length === 1 && first !== undefined && first < 0x80) return Buffer.from(item);
    return Buffer.concat([prefix(0x80, item.length), item]);
  }
  const parts = item.map(encodeRlp);
  const length = parts.reduce((total, part) => total + part.length, 0);
  return Buffer.concat([prefix(0xc0, length), ...parts]);
}

/** A number as RLP wants it: big-endian, without leading zeros; nothing at all for zero. */
export function rlpInteger(value: bigint | number): Buffer {
  if (BigInt(value) === 0n) return Buffer.alloc(0);
  const digits = value.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}

function prefix(offset: number, length: number): Buffer {
  if (length < 56) return Buffer.of(offset + length);
  const lengthBytes = rlpInteger(length);
  return Buffer.concat([Buffer.of(offset + 55 + lengthBytes.length), lengthBytes]);
}

function isBytes(item: RlpItem): item is Uint8Array {
  return item instanceof Uint8Array;
}
