import type { AuthorizationId, Reserved, SettleResponse } from "@coinslot/protocol";
import type { ReserveResult } from "../ledger/payments/reserve-request.ts";
import { refundedResponse, refusedResponse, settleResponseOf } from "./settle-response.ts";
import { burntGas, codeLimited } from "./unavailable-errors.ts";

const overCommitted = {
  reason: "invalid_exact_evm_insufficient_balance",
  message: "The payer's balance is committed to its other payments.",
} as const;

function refusedForGas(forMs: number) {
  return { reason: "payer_not_accepted", message: burntGas(forMs) } as const;
}

/**
 * The gate's result of an attempt to reserve.
 *
 * @throws FacilitatorError where a payer with code must wait
 */
export function toReserved(id: AuthorizationId, result: ReserveResult): Reserved {
  switch (result.outcome) {
    case "reserved":
      return { state: "reserved", reservation: { id, token: result.token } };
    case "resumed":
      return {
        state: "resumed",
        reservation: { id, token: result.token },
        isKeyed: result.payment.keyHash !== undefined,
        answer: result.answer,
        mayRun: result.mayRun,
      };
    case "used_up":
      return { state: "used_up" };
    case "payer_limited":
      return {
        state: "payer_limited",
        retryAfterSeconds: Math.ceil(result.retryAfterMs / 1000),
        isRunning: result.isRunning,
      };
    case "in_use":
    case "key_conflict":
      return { state: result.outcome };
    case "delivered":
      return {
        state: "delivered",
        settlement: settleResponseOf({ payment: result.payment }),
        answer: result.answer,
      };
    case "refunded":
      return { state: "refunded", settlement: settleResponseOf({ payment: result.payment }) };
    case "over_committed":
      return { state: "refused", ...overCommitted };
    case "burnt_gas":
      return { state: "refused", ...refusedForGas(result.forMs) };
    case "code_limited":
      throw codeLimited(result);
  }
}

/** Response for a payment that is neither reserved nor known. */
type Unreserved = Exclude<
  ReserveResult,
  { outcome: "reserved" | "resumed" | "in_use" | "delivered" }
>;

/**
 * Response for a settlement without a gate that was not admitted.
 *
 * @throws FacilitatorError where a payer with code must wait
 */
export function toRefusedSettlement(
  { network, payer }: AuthorizationId,
  result: Unreserved,
): SettleResponse {
  switch (result.outcome) {
    case "key_conflict":
      return refusedResponse({
        reason: "duplicate_settlement",
        message: "The idempotency key belongs to another payment.",
        payer,
        network,
      });
    case "refunded":
      return refundedResponse({ payment: result.payment });
    case "over_committed":
      return refusedResponse({ ...overCommitted, payer, network });
    case "burnt_gas":
      return refusedResponse({ ...refusedForGas(result.forMs), payer, network });
    case "code_limited":
      throw codeLimited(result);
    case "used_up":
    case "payer_limited":
      throw new TypeError("A reservation with an order runs no handler, and has no limit of runs");
  }
}
