import type { Hex } from "@coinslot/protocol";

/** A signature of one key, as the `(v, r, s)` overload of a token takes it. */
export interface KeySignature {
  v: 27 | 28;
  /** 32 bytes. */
  r: Hex;
  /** 32 bytes, at most half the order of the curve. */
  s: Hex;
}

const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const maxS = curveOrder / 2n;

/**
 * Takes apart a signature of one key. The full form has 65 bytes, with v as 27 and 28 or as 0 and
 * 1. The compact form of EIP-2098 has 64 bytes.
 *
 * @returns `undefined` for anything else, and for a high s. Every signature has a twin with the
 * other s, and EIP-2 tokens take only the lower one.
 */
export function splitSignature(signature: Hex): KeySignature | undefined {
  if (signature.length === 2 + 128) return splitCompact(signature);
  if (signature.length !== 2 + 130) return undefined;
  const last = Number.parseInt(signature.slice(130), 16);
  const v = last < 27 ? last + 27 : last;
  if (v !== 27 && v !== 28) return undefined;
  return keySignature(v, signature.slice(2, 66), signature.slice(66, 130));
}

/** EIP-2098: the parity of y is in the highest bit of s, which a low s leaves free. */
function splitCompact(signature: Hex): KeySignature | undefined {
  const parityAndS = BigInt(`0x${signature.slice(66)}`);
  const s = BigInt.asUintN(255, parityAndS);
  const v = parityAndS === s ? 27 : 28;
  return keySignature(v, signature.slice(2, 66), s.toString(16).padStart(64, "0"));
}

function keySignature(v: 27 | 28, r: string, s: string): KeySignature | undefined {
  const rNumber = BigInt(`0x${r}`);
  const sNumber = BigInt(`0x${s}`);
  const isInRange = rNumber > 0n && rNumber < curveOrder && sNumber > 0n && sNumber <= maxS;
  return isInRange ? { v, r: `0x${r}`, s: `0x${s}` } : undefined;
}
