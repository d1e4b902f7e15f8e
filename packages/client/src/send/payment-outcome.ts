import type { SettleResponse } from "@coinslot/protocol";
import type { SignedPayment } from "../sign/signed-payment.ts";
import type { Protocol } from "../wires/wire.ts";

/**
 * Outcome of a payment, as far as the seller's answer proves it.
 *
 * - `settled`: with a receipt that says so.
 * - `rejected`: with another 402, or an answer that says that nothing was charged (429
 *   `payer_limited` and 503 `payments_stopped`: not before `Retry-After`).
 * - `unclear`: the answer proves neither, such as a handler's 500, or a 200 without a receipt.
 */
export interface PaymentOutcome {
  state: "settled" | "rejected" | "unclear";
  /** The protocol in which it was paid. */
  protocol: Protocol;
  payment: SignedPayment;
  /** The seller's claim of the settlement, if the answer carried it. */
  receipt?: SettleResponse | undefined;
  /** The seller's reason for the rejection, in its words. */
  reason?: string | undefined;
}

// A WeakMap beside the response, so that the response stays the one that `fetch` returned.
const outcomes = new WeakMap<Response, PaymentOutcome>();

/** Notes the outcome beside its response. */
export function noteOutcome(response: Response, outcome: PaymentOutcome): void {
  outcomes.set(response, outcome);
}

/**
 * The payment's outcome for a response of a paying fetch; `undefined` if nothing was paid for it. A
 * copy of the response (`clone()`) does not carry it.
 */
export function paymentOf(response: Response): PaymentOutcome | undefined {
  return outcomes.get(response);
}

/**
 * The seller's receipt for a response that a paying fetch returned, if it sent one. One of MPP is
 * there only if the chain shows the payment.
 */
export function receiptOf(response: Response): SettleResponse | undefined {
  return outcomes.get(response)?.receipt;
}
