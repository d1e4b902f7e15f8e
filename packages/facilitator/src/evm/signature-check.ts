import type { Hex, Payment } from "@coinslot/protocol";
import { hashTransfer } from "./hash-transfer.ts";
import type { RecoverSigner } from "./recover-signer.ts";
import { splitSignature } from "./split-signature.ts";

/**
 * Says whether a payment was signed by its payer's own key. With a memory, since one payment is
 * checked on its way into a shop, before its trial and when it is settled, and finding the key takes
 * longer than the rest of a check. A payment cannot be changed, so what is remembered stays true.
 */
export function createSignatureCheck(options: {
  separatorOf: (payment: Payment) => Hex;
  recoverSigner: RecoverSigner;
}): (payment: Payment) => boolean {
  const { separatorOf, recoverSigner } = options;
  const known = new WeakMap<Payment, boolean>();

  function check(payment: Payment): boolean {
    const { authorization, signature } = payment;
    const key = splitSignature(signature);
    if (key === undefined) return false;
    const digest = hashTransfer(separatorOf(payment), authorization);
    return recoverSigner(digest, key) === authorization.from;
  }

  return function isSignedByPayer(payment) {
    const remembered = known.get(payment);
    if (remembered !== undefined) return remembered;
    const isSigned = check(payment);
    known.set(payment, isSigned);
    return isSigned;
  };
}
