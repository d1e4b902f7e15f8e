import type { Hex } from "@coinslot/protocol";
import { compactSignatureToSignature, parseCompactSignature, serializeSignature } from "viem";
import type { SignedUnder } from "../cycles/cycle.ts";

const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** Tokens and sellers take no greater `s` (EIP-2). */
const maxS = curveOrder / 2n;

/** The form of a key's signature. */
export interface SignatureForm {
  /** 65 bytes, from which an address is recovered. */
  recoverable: Hex;
  /** `undefined` for 65 bytes with a low `s`. */
  form: SignedUnder["form"];
}

/** Reads the form of a signature; `undefined` for what is no key's. */
export function readSignatureForm(signature: Hex): SignatureForm | undefined {
  if (signature.length === 2 + 130) {
    const isHigh = sOf(signature) > maxS;
    return { recoverable: signature, form: isHigh ? "high s" : undefined };
  }
  if (signature.length !== 2 + 128) return undefined;
  try {
    const parts = compactSignatureToSignature(parseCompactSignature(signature));
    return { recoverable: serializeSignature(parts), form: "compact" };
  } catch {
    return undefined;
  }
}

/** Writes a signature of 65 bytes with a low `s` in another form. */
export function writeSignatureForm(signature: Hex, form: SignedUnder["form"]): Hex {
  const r = signature.slice(2, 66);
  const isOdd = signature.endsWith("1c") || signature.endsWith("01");
  switch (form) {
    case undefined:
      return signature;
    case "compact":
      return `0x${r}${toWord(isOdd ? sOf(signature) | (1n << 255n) : sOf(signature))}`;
    case "high s":
      return `0x${r}${toWord(curveOrder - sOf(signature))}${isOdd ? "1b" : "1c"}`;
  }
}

const sOf = (signature: Hex) => BigInt(`0x${signature.slice(66, 130)}`);
const toWord = (value: bigint) => value.toString(16).padStart(64, "0");

/** Notes for people on forms that are not the usual one. */
export const formNotes = {
  compact: "64 bytes, the compact form of EIP-2098: some sellers take 65 alone.",
  "high s":
    "s is in the upper half of the curve's order: tokens take its lower twin alone (EIP-2).",
} as const satisfies Record<NonNullable<SignedUnder["form"]>, string>;
