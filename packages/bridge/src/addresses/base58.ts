const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** Decodes base58 (Bitcoin's alphabet); `undefined` if a character is not in it. Each leading "1" is a zero byte. */
export function decodeBase58(text: string): Uint8Array | undefined {
  let value = 0n;
  for (const character of text) {
    const digit = alphabet.indexOf(character);
    if (digit < 0) return undefined;
    value = value * 58n + BigInt(digit);
  }
  const leadingZeros = /^1*/.exec(text)?.[0].length ?? 0;
  const digits = value === 0n ? "" : value.toString(16);
  const hex = digits.padStart(digits.length + (digits.length % 2), "0");
  const bytes = new Uint8Array(leadingZeros + hex.length / 2);
  for (let i = 0; i < hex.length / 2; i++) {
    bytes[leadingZeros + i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  }
  return bytes;
}
