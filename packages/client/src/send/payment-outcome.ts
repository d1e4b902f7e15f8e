import type { SettleResponse } from "@coinslot/protocol";
import type { SignedPayment } from "../sign/signed-payment.ts";

/**
 * What became of a payment, as far as the seller's answer tells:
 * `settled` with a receipt that says so; `rejected` with another 402, or an
 * answer that says that nothing was charged (429 `payer_limited`: not before
 * `Retry-After`); `unclear` when the answer
 * proves neither, such as a handler's 500, or a 200 without a receipt.
 */
export interface PaymentOutcome {
  state: "settled" | "rejected" | "unclear";
  payment: SignedPayment;
  /** What the seller claims of the settlement, if the answer carried it. */
  receipt?: SettleResponse | undefined;
  /** Why the seller rejected the payment, in its words. */
  reason?: string | undefined;
}

// A response stays the response that `fetch` gave: what is known of its payment stands beside it.
const outcomes = new WeakMap<Response, PaymentOutcome>();

/** Notes the outcome beside its response. */
export function noteOutcome(response: Response, outcome: PaymentOutcome): void {
  outcomes.set(response, outcome);
}

/**
 * What became of the payment for a response that a paying fetch returned; `undefined` if nothing
 * was paid for it. A copy of the response (`clone()`) does not carry it.
 */
export function paymentOf(response: Response): PaymentOutcome | undefined {
  return outcomes.get(response);
}

/** The seller's receipt for a response that a paying fetch returned, if it sent one. */
export function receiptOf(response: Response): SettleResponse | undefined {
  return outcomes.get(response)?.receipt;
}
