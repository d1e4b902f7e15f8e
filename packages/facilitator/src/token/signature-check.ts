import type { Hex, Payment } from "@coinslot/protocol";
import { hashTransfer } from "./hash-transfer.ts";
import type { RecoverSigner } from "./recover-signer.ts";
import { splitSignature } from "./split-signature.ts";

/** Payments between their first check and their last: a busy second's worth. */
const mostKept = 4_000;

/**
 * Says whether a payment was signed by its payer's own key. With a memory, since one payment is
 * checked on its way into a shop, before its trial and when it is settled, and finding the key takes
 * longer than the rest of a check. What is remembered depends on nothing but what was signed, so it
 * is as true later.
 */
export function createSignatureCheck(options: {
  separatorOf: (payment: Payment) => Hex;
  recoverSigner: RecoverSigner;
}): (payment: Payment) => boolean {
  const { separatorOf, recoverSigner } = options;
  const known = new Map<string, boolean>();

  function check({ authorization, signature }: Payment, separator: Hex): boolean {
    const key = splitSignature(signature);
    if (key === undefined) return false;
    return recoverSigner(hashTransfer(separator, authorization), key) === authorization.from;
  }

  return function isSignedByPayer(payment) {
    const { from, to, value, validAfter, validBefore, nonce } = payment.authorization;
    const separator = separatorOf(payment);
    const terms = [from, to, value, validAfter, validBefore, nonce];
    const question = `${separator}/${terms.join("/")}/${payment.signature}`;
    const remembered = known.get(question);
    if (remembered !== undefined) return remembered;
    const isSigned = check(payment, separator);
    known.set(question, isSigned);
    // The order of insertion is that of age.
    for (const oldest of known.keys()) {
      if (known.size <= mostKept) break;
      known.delete(oldest);
    }
    return isSigned;
  };
}
