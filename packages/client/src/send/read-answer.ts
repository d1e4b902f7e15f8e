import type { SettleResponse } from "@coinslot/protocol";
import type { SignedPayment } from "../sign/signed-payment.ts";
import { wireOf } from "../wires/registry.ts";
import type { PaymentOutcome } from "./payment-outcome.ts";
import { readRefusal } from "./read-refusal.ts";

/** The answer to a request that carried a payment. */
export type Answer =
  /** A final answer, to be returned: the seller has decided, either way. */
  | { kind: "final"; state: PaymentOutcome["state"]; receipt?: SettleResponse; reason?: string }
  /** An undecided answer of the seller, or of a proxy before it: retry. */
  | { kind: "unclear"; receipt?: SettleResponse };

/**
 * Statuses that leave the outcome open. By 409, a request that still runs uses the same
 * authorization. By 502 and 504, a gateway lost the answer. By 503, the settlement is unknown as
 * yet.
 */
const openStatuses = new Set([409, 502, 503, 504]);

/**
 * The caller's own key belongs to another payment: a retry changes nothing, and nothing was paid.
 */
const keyConflict = "idempotency_key_in_use";

/**
 * The seller takes no new payments for a while: a retry changes nothing, and nothing was paid. Any
 * other 503 leaves the outcome open.
 */
const paymentsStopped = "payments_stopped";

/**
 * Statuses that a seller may answer without a charge. Its handler failed (500), or was too late
 * (504), or the payer must wait (429).
 */
const failures = new Set([429, 500, 504]);

/** Time granted to a refusal's body to say that money has moved. */
const chargeWaitMs = 2_000;

/** Reads the payment's outcome from the answer. The body can still be read afterwards. */
export async function readAnswer(response: Response, payment: SignedPayment): Promise<Answer> {
  const wire = wireOf(payment);
  const receipt = wire.readReceipt(response.headers, payment);
  const known = receipt === undefined ? {} : { receipt };
  if (response.status === 409 && (await readRefusal(response))?.error === keyConflict) {
    return { kind: "final", state: "rejected", ...known, reason: keyConflict };
  }
  if (failures.has(response.status) && receipt === undefined) {
    const refusal = await readRefusal(response);
    if (refusal?.charged === false) {
      return { kind: "final", state: "rejected", reason: refusal.error };
    }
  }
  if (response.status === 503 && receipt === undefined && (await isStopped(response))) {
    return { kind: "final", state: "rejected", reason: paymentsStopped };
  }
  if (openStatuses.has(response.status)) return { kind: "unclear", ...known };
  if (receipt?.success) return { kind: "final", state: "settled", receipt };
  if (response.status !== 402) return { kind: "final", state: "unclear", ...known };
  // The reason in a receipt needs no body, which may break off.
  if (receipt?.errorReason) {
    return { kind: "final", state: "rejected", receipt, reason: receipt.errorReason };
  }
  const state = (await isCharged(response)) ? "unclear" : "rejected";
  const reason = await wire.readReason(response);
  return { kind: "final", state, ...known, ...(reason ? { reason } : {}) };
}

/**
 * Resolves to whether a refusal's body says that money has moved: the receipt may be lost on its
 * way.
 */
async function isCharged(response: Response): Promise<boolean> {
  try {
    return (await readRefusal(response, chargeWaitMs))?.charged === true;
  } catch {
    // A body that breaks off says nothing. The wire decides whether a header suffices.
    return false;
  }
}

/** Resolves to whether a refusal's body says that the seller takes no new payments. */
async function isStopped(response: Response): Promise<boolean> {
  try {
    const refusal = await readRefusal(response, chargeWaitMs);
    return refusal?.error === paymentsStopped && refusal.charged === false;
  } catch {
    return false;
  }
}
