import type { Hex } from "@coinslot/protocol";
import {
  parseSignature,
  serializeCompactSignature,
  serializeSignature,
  signatureToCompactSignature,
} from "viem";

const curveOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Other ways to write a 65-byte signature; all of them recover to the same signer. */
export type SignatureForm =
  /** v as 0 or 1. */
  | "parity"
  /** EIP-2098, 64 bytes. */
  | "compact"
  /** The twin with n - s. */
  | "highS";

/** Writes a signature in another form. */
export function changeSignature(signature: Hex, form: SignatureForm): Hex {
  const { r, s, yParity } = parseSignature(signature);
  switch (form) {
    case "parity":
      return `0x${signature.slice(2, 130)}0${yParity}`;
    case "compact":
      return serializeCompactSignature(signatureToCompactSignature({ r, s, yParity }));
    case "highS": {
      const twin: Hex = `0x${(curveOrder - BigInt(s)).toString(16).padStart(64, "0")}`;
      return serializeSignature({ r, s: twin, yParity: 1 - yParity });
    }
  }
}
