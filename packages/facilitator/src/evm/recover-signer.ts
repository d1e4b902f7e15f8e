import { type Address, type Hex, keccak256 } from "@coinslot/protocol";
import { secp256k1 as noble } from "@noble/curves/secp256k1";
import { loadNativeSecp256k1 } from "./native-secp256k1.ts";
import type { KeySignature } from "./split-signature.ts";

/** The address whose key signed a digest, in lower case; `undefined` when no key can have. */
export type RecoverSigner = (digest: Uint8Array, signature: KeySignature) => Address | undefined;

/** The way in which signers are recovered, and the reason if it is not the fast one. */
export type SignerRecovery =
  | { implementation: "native"; recoverSigner: RecoverSigner }
  | { implementation: "noble"; recoverSigner: RecoverSigner; cause: unknown };

/** Gives the 65 bytes of an uncompressed public key, or throws where there is none. */
export type RecoverKey = (digest: Uint8Array, compact: Uint8Array, parity: number) => Uint8Array;

/** A signature made elsewhere, so that a library is not its own judge. */
export const sample = {
  digest: "0xe490b8e5ebb0e448fa4c3618796f98dfc421b4d57b3b872887064afe79ad5237",
  signature: {
    v: 27,
    r: "0xa0fa11dddf4ed7f5ea415fc9a3c74cbaff4572f6908c5c8700b5373671ffaf79",
    s: "0x5a5276bfb04d55cd1c24f08268b663a92a537782bfd619a8063f62181d0d1fb2",
  },
  signer: "0x13164d804f68eaa3f7878ef3ba042cd936fb44a6",
} satisfies { digest: Hex; signature: KeySignature; signer: Address };

/**
 * Chooses how to recover signers: natively (libsecp256k1, 20 times as fast), or in JavaScript.
 * JavaScript is the fallback when the binary is missing for this machine or fails a known sample.
 *
 * @param load gives the native implementation, or throws
 */
export function createSignerRecovery(load: () => RecoverKey = loadNative): SignerRecovery {
  try {
    const recoverSigner = recoverWith(load());
    if (
      recoverSigner(Buffer.from(sample.digest.slice(2), "hex"), sample.signature) === sample.signer
    ) {
      return { implementation: "native", recoverSigner };
    }
    throw new Error("The native secp256k1 binding recovers another signer than it should.");
  } catch (cause) {
    return { implementation: "noble", recoverSigner: recoverWith(recoverByNoble), cause };
  }
}

function loadNative(): RecoverKey {
  const { ecdsaRecover } = loadNativeSecp256k1();
  return (digest, compact, parity) => ecdsaRecover(compact, parity, digest, false);
}

function recoverByNoble(digest: Uint8Array, compact: Uint8Array, parity: number): Uint8Array {
  const signature = noble.Signature.fromCompact(compact).addRecoveryBit(parity);
  return signature.recoverPublicKey(digest).toRawBytes(false);
}

function recoverWith(recoverKey: RecoverKey): RecoverSigner {
  return function recoverSigner(digest, { v, r, s }) {
    const compact = Buffer.from(r.slice(2) + s.slice(2), "hex");
    let publicKey: Uint8Array;
    try {
      publicKey = recoverKey(digest, compact, v - 27);
    } catch {
      // No point of the curve has this r, or the key would be the point at infinity.
      return undefined;
    }
    return `0x${Buffer.from(keccak256(publicKey.subarray(1))).toString("hex", 12)}`;
  };
}
