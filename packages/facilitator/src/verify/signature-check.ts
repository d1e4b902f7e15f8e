import type { Payment } from "@coinslot/protocol";
import type { RecoverSigner } from "../evm/recover-signer.ts";
import { splitSignature } from "../evm/split-signature.ts";

/**
 * Creates the check that the payer's own key signed a payment. Cached by payment object, since
 * admission, simulation and settlement all check it. Key recovery takes longer than the rest of a
 * check. Payments are immutable, so a cached result stays true.
 */
export function createSignatureCheck(options: {
  digestOf: (payment: Payment) => Uint8Array;
  recoverSigner: RecoverSigner;
}): (payment: Payment) => boolean {
  const { digestOf, recoverSigner } = options;
  const known = new WeakMap<Payment, boolean>();

  function check(payment: Payment): boolean {
    const { authorization, signature } = payment;
    const key = splitSignature(signature);
    if (key === undefined) return false;
    return recoverSigner(digestOf(payment), key) === authorization.from;
  }

  return function isSignedByPayer(payment) {
    const remembered = known.get(payment);
    if (remembered !== undefined) return remembered;
    const isSigned = check(payment);
    known.set(payment, isSigned);
    return isSigned;
  };
}
