import type { PaymentStanding } from "../ledger/payments/ledger-payment.ts";

/** True if no work in flight can change the payment's state. */
export function hasOutcome({ state }: PaymentStanding): boolean {
  switch (state) {
    case "confirmed":
    case "failed":
    case "expired":
    case "released":
      return true;
    case "reserved":
    case "queued":
    case "submitted":
      return false;
  }
}
