import type { Refusal } from "../refusals.ts";

/** Another request of the channel runs, or a refund: this one was not looked at. */
export function channelBusy(retryAfterSeconds: number): Refusal {
  return {
    status: 503,
    error: "payment_in_use",
    charged: false,
    message: "The payment channel is in use. Nothing was charged for this request",
    retryAfterSeconds,
  };
}

/** The ledger failed at the charge. The same request finds out, and is charged once. */
export const channelChargePending: Refusal = {
  status: 503,
  error: "settlement_pending",
  message: "The outcome of the charge is not known yet. Retry the same request with it",
  retryAfterSeconds: 2,
};

/** A deposit is under way. The same request finds out, and deposits nothing more. */
export function channelDepositPending({
  transaction,
  retryAfterSeconds,
}: {
  transaction: string | undefined;
  retryAfterSeconds: number;
}): Refusal {
  return {
    status: 503,
    error: "settlement_pending",
    charged: false,
    message: "The deposit is not in a block yet. Retry the same request with the same payment",
    retryAfterSeconds,
    ...(transaction === undefined ? {} : { transaction }),
  };
}

/** A refund of a channel is under way. The same question finds out, and begins no second one. */
export function channelRefundPending(retryAfterSeconds: number): Refusal {
  return {
    status: 503,
    error: "settlement_pending",
    message: "The outcome of the refund is not known yet. Retry the same request with it",
    retryAfterSeconds,
  };
}

/** The signer, or the network, has had too many refunds of channels. */
export function channelRefundsLimited(retryAfterSeconds: number): Refusal {
  return {
    status: 429,
    error: "payer_limited",
    charged: false,
    message: "Too many refunds of channels for now. A withdrawal from the escrow needs no seller",
    retryAfterSeconds,
  };
}
