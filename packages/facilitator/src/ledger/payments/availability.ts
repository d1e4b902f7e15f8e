import type { ReservationRequest } from "@coinslot/protocol";
import type { LedgerPayment } from "../payments/ledger-payment.ts";

/** Rights of a request that brings an authorization to its payment. */
export type Availability =
  | "free"
  | "in_use"
  | "key_conflict"
  | "resumable"
  | "delivered"
  | "refunded";

/**
 * Availability of an authorization for a request. `isHeld`: another request runs for it now, in a
 * process that lives.
 *
 * A payload is public once it was broadcast. So a payment whose buyer sent a key is resumed with
 * that key only. One without a key is resumed by the same request only, and once.
 */
export function availabilityOf(
  payment: LedgerPayment | undefined,
  isHeld: boolean,
  request: Pick<ReservationRequest, "fingerprint" | "keyHash">,
): Availability {
  if (payment === undefined) return "free";
  // Also where a reorganisation took the payment away: its refund may be signed.
  if (payment.refundStartedAt !== undefined) return "refunded";
  const isSameRequest = payment.fingerprint === request.fingerprint;
  const isSameKey = payment.keyHash !== undefined && payment.keyHash === request.keyHash;
  switch (payment.state) {
    case "released":
    case "failed":
    case "expired":
      // The chain check that follows says whether the authorization still has a life.
      return "free";
    case "reserved":
      if (isHeld) return isSameKey && !isSameRequest ? "key_conflict" : "in_use";
      return "free";
    case "queued":
    case "submitted":
    case "confirmed":
      if (payment.deliveredAt !== undefined) {
        return isSameKey && !isSameRequest ? "key_conflict" : "delivered";
      }
      if (isSameKey && !isSameRequest) return "key_conflict";
      if (isHeld || !isSameRequest) return "in_use";
      return payment.keyHash === undefined || isSameKey ? "resumable" : "in_use";
  }
}
