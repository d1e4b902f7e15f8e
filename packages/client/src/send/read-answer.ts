import { DecodeError, decodeReceipt, headerName, type SettleResponse } from "@coinslot/protocol";
import { readOffer } from "../offer/read-offer.ts";
import type { PaymentOutcome } from "./payment-outcome.ts";
import { readRefusal } from "./read-refusal.ts";

/** The answer to a request that carried a payment. */
export type Answer =
  /** To be returned: the seller has decided, whatever its decision. */
  | { kind: "final"; state: PaymentOutcome["state"]; receipt?: SettleResponse; reason?: string }
  /** The seller, or something before it, does not know yet: to be asked again. */
  | { kind: "unclear"; receipt?: SettleResponse };

/**
 * Statuses that leave the outcome open: the same authorization is in use by a request that still
 * runs (409), a gateway lost the answer (502, 504), or the settlement is not known yet (503).
 */
const openStatuses = new Set([409, 502, 503, 504]);

/** The caller's own key belongs to another payment: asking again changes nothing, and nothing was paid. */
const keyConflict = "idempotency_key_in_use";

/**
 * Answers that a seller may say to have charged nothing for: a handler's that is too much (500) or too
 * late (504), and one to a payer that must wait (429).
 */
const failures = new Set([429, 500, 504]);

/** Reads what the answer says of the payment. The body can still be read afterwards. */
export async function readAnswer(response: Response): Promise<Answer> {
  const receipt = readReceipt(response.headers);
  const told = receipt === undefined ? {} : { receipt };
  if (response.status === 409 && (await readRefusal(response))?.error === keyConflict) {
    return { kind: "final", state: "rejected", ...told, reason: keyConflict };
  }
  if (failures.has(response.status) && receipt === undefined) {
    const refusal = await readRefusal(response);
    if (refusal?.charged === false) {
      return { kind: "final", state: "rejected", reason: refusal.error };
    }
  }
  if (openStatuses.has(response.status)) return { kind: "unclear", ...told };
  if (receipt?.success) return { kind: "final", state: "settled", receipt };
  if (response.status !== 402) return { kind: "final", state: "unclear", ...told };
  const reason = receipt?.errorReason ?? (await readOffer(response))?.error;
  return { kind: "final", state: "rejected", ...told, ...(reason ? { reason } : {}) };
}

function readReceipt(headers: Headers): SettleResponse | undefined {
  const header =
    headers.get(headerName.paymentResponse) ?? headers.get(headerName.paymentResponseV1);
  if (header === null) return undefined;
  try {
    return decodeReceipt(header);
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}
