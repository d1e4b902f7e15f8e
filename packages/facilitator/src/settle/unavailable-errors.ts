import { FacilitatorError, type Network } from "@coinslot/protocol";

/** What a new payment is told while no relayer of its network can pay for gas. */
export function outOfGasMoney(network: Network): FacilitatorError {
  return new FacilitatorError(`No more payments can be settled on ${network} at the moment`, {
    kind: "unavailable",
  });
}

/** What a payer is told that has let handlers run for nothing: its payment is not invalid, it must wait. */
export function releasedTooOften(): FacilitatorError {
  return new FacilitatorError(
    "Too many requests of this payer ended without a payment; try again later",
    { kind: "unavailable" },
  );
}

/** What is told whose reservation was given to somebody else, or released, meanwhile. */
export function reservationLost(): FacilitatorError {
  return new FacilitatorError("The reservation was lost; try again with the same payment", {
    kind: "unavailable",
  });
}

/** What is told whoever waits for a facilitator to be ready that is closed before it is. */
export function closedTooSoon(): FacilitatorError {
  return new FacilitatorError("The facilitator was closed before it was ready", {
    kind: "unavailable",
  });
}
