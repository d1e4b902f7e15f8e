import type { Address, Hex } from "@coinslot/protocol";
import type { Rests } from "../back-off.ts";
import type { KnownReceivers } from "./receivers-of.ts";

/** Memory of one process about its plans. Losing it costs trials, and gas at worst. */
export interface ClaimMemory extends KnownReceivers {
  /** Rows of the next claim of an authorizer: half as many after one that was reverted. */
  maxRows: Map<Address, number>;
  /** Channels whose rows could not be claimed, until the next attempt. */
  rests: Rests<Hex>;
  /** Authorizers without a key that were reported. */
  reported: Set<Address>;
}

export function createClaimMemory(): ClaimMemory {
  return {
    maxRows: new Map(),
    rests: new Map(),
    reported: new Set(),
    receivers: undefined,
  };
}
