import { FacilitatorError, type Network } from "@coinslot/protocol";
import type { CodeLimit } from "../ledger/payments/reserve-request.ts";

/** Error for a new payment while no relayer of its network can pay for gas. */
export function outOfGasMoney(network: Network): FacilitatorError {
  return new FacilitatorError(`No more payments can be settled on ${network} at the moment`, {
    kind: "unavailable",
  });
}

/** Error for a payment that was tried on a block from before the ledger was opened anew. */
export function nodeIsBehind(): FacilitatorError {
  return new FacilitatorError("The node that tried the payment is behind its chain; try again", {
    kind: "unavailable",
    retryAfterSeconds: 1,
  });
}

/** Refusal of a payer whose code has burnt gas. */
export function burntGas(forMs: number): string {
  const hours = Math.ceil(forMs / 3_600_000);
  return `The code of this payer has burnt gas in a transaction that moved no money. It is refused for ${hours} h more.`;
}

const whyCodeWaits = {
  too_many_open:
    "This payer has code, and too many payments in flight for its record; try again when they are settled",
  given_up: "This payer has code, and gave up payments within the last minute; try again later",
  no_gas_left: "The gas for payments of payers with code is used up; try again later",
} as const satisfies Record<CodeLimit["why"], string>;

/** A payer with code must wait: for its own payments, or for others'. */
export function codeLimited({ why, retryAfterMs }: CodeLimit): FacilitatorError {
  const message = whyCodeWaits[why];
  return new FacilitatorError(message, {
    kind: "unavailable",
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterMs / 1_000)),
  });
}

/** Error for a caller whose reservation was given to another caller, or released, meanwhile. */
export function reservationLost(): FacilitatorError {
  return new FacilitatorError("The reservation was lost; try again with the same payment", {
    kind: "unavailable",
  });
}

/** Error for callers of `ready` on a facilitator that is closed before it is ready. */
export function closedTooSoon(): FacilitatorError {
  return new FacilitatorError("The facilitator was closed before it was ready", {
    kind: "unavailable",
  });
}
