import type { Hex, InvalidReason, SettleErrorReason, SettleResponse } from "@coinslot/protocol";
import type { PaymentStanding } from "../ledger/payments/ledger-payment.ts";
import { schemeOf } from "../schemes/registry.ts";

/** A payment's current state, and the hash of its transaction where no block holds it yet. */
export interface StandingPayment {
  payment: PaymentStanding;
  hash?: Hex | undefined;
}

/** The response for a payment in its current state. */
export function settleResponseOf({ payment, hash }: StandingPayment): SettleResponse {
  const { authorization, confirmedAt, inclusion, value } = payment;
  const { network, payer } = authorization;
  const common = { network, payer };
  switch (payment.state) {
    case "confirmed":
      return {
        success: true,
        transaction: inclusion?.transactionHash ?? "",
        amount: value.toString(),
        ...(confirmedAt === undefined ? {} : { settledAt: confirmedAt }),
        ...common,
      };
    case "failed":
    case "expired": {
      const errorReason = payment.reason ?? schemeOf(payment).reasons.executionFailed;
      const transaction = inclusion?.transactionHash ?? "";
      return { success: false, errorReason, transaction, ...common };
    }
    case "reserved":
    case "queued":
    case "submitted":
    case "released":
      return {
        success: false,
        errorReason: "settlement_pending",
        errorMessage: "The settlement is pending; retry with the same payment.",
        transaction: hash ?? "",
        ...common,
      };
  }
}

/**
 * The response to a settlement of a payment that was settled, or is being settled, for another
 * request.
 */
export function duplicateResponse({ payment, hash }: StandingPayment): SettleResponse {
  const { network, payer } = payment.authorization;
  return {
    success: false,
    errorReason: "duplicate_settlement",
    errorMessage: "This payment has been settled, or is being settled, for another request.",
    transaction: payment.inclusion?.transactionHash ?? hash ?? "",
    network,
    payer,
  };
}

/** The response to a settlement of a payment that is given back, or is about to be. */
export function refundedResponse({ payment, hash }: StandingPayment): SettleResponse {
  const { network, payer } = payment.authorization;
  return {
    success: false,
    errorReason: "payment_refunded",
    errorMessage: "This payment was settled and is given back; sign a new one.",
    transaction: payment.inclusion?.transactionHash ?? hash ?? "",
    network,
    payer,
  };
}

/** The response to a payment that was refused before any work for it. */
export function refusedResponse(refusal: {
  reason: SettleErrorReason | InvalidReason;
  message?: string | undefined;
  payer?: string | undefined;
  network: string;
}): SettleResponse {
  const { reason, message, payer, network } = refusal;
  return {
    success: false,
    errorReason: reason,
    ...(message === undefined ? {} : { errorMessage: message }),
    ...(payer === undefined ? {} : { payer }),
    transaction: "",
    network,
  };
}
