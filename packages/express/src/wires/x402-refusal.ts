import { malformedPayment, type Refusal, settlementPending } from "../refusals.ts";
import type { PaymentFailure } from "./wire.ts";

/** Statuses of x402, the same in both versions: 400, 503 while money may move, else the offer. */
export function refuseInX402(failure: PaymentFailure): Refusal | undefined {
  switch (failure.kind) {
    case "malformed":
      return malformedPayment(failure.message);
    case "invalid":
    case "used_up":
    case "refunded":
    case "delivered":
      return undefined;
    case "unsettled": {
      const { errorReason, transaction } = failure.settlement;
      return errorReason === "settlement_pending" ? settlementPending(transaction) : undefined;
    }
  }
}
