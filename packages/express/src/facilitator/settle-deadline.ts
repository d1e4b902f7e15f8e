import { findKnownChain, type Network, settleTimeoutMsFor } from "@coinslot/protocol";

/** Time of an answer that says "pending", from a facilitator that has waited to the end. */
const graceMs = 5_000;

/**
 * Default deadline of a settlement at a remote facilitator, in milliseconds. It is a little more
 * than that one waits for the chain's blocks. An earlier end would lose the hash of its answer.
 */
export function settleDeadlineMs(network: Network): number {
  return settleTimeoutMsFor(findKnownChain(network)?.blockTimeMs) + graceMs;
}
