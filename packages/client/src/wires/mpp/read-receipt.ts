import {
  chainIdOf,
  DecodeError,
  decodeCredential,
  decodePaymentReceipt,
  evmCharge,
  headerName,
  type PaymentReceipt,
  type SettleResponse,
} from "@coinslot/protocol";
import type { SignedPayment } from "../../sign/signed-payment.ts";

/**
 * Reads the `Payment-Receipt` for a payment. One for another chain, challenge or method is none.
 * The terms are those that were signed, since a receipt has none.
 */
export function readReceipt(headers: Headers, payment: SignedPayment): SettleResponse | undefined {
  const header = headers.get(headerName.paymentReceipt);
  if (header === null) return undefined;
  try {
    const receipt = decodePaymentReceipt(header);
    if (!isFor(receipt, payment)) return undefined;
    const { network, payer, amount } = payment.terms;
    return { success: true, transaction: receipt.reference, network, payer, amount };
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** The reference's own receipts name neither chain nor challenge. */
function isFor(receipt: PaymentReceipt, { header, terms }: SignedPayment): boolean {
  const { challenge } = decodeCredential(header.value);
  const { method, chainId, challengeId } = receipt;
  return (
    method === evmCharge.method &&
    (chainId === undefined || chainId === chainIdOf(terms.network)) &&
    (challengeId === undefined || challengeId === challenge.id)
  );
}
