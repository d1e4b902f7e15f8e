import type { Address, Hex } from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { Rests } from "../back-off.ts";
import type { KnownReceivers } from "./receivers-of.ts";

/** Memory of one process about its plans. Losing it costs trials, and gas at worst. */
export interface ClaimMemory extends KnownReceivers {
  /** Rows of the next claim of an authorizer: half as many after one that was reverted. */
  maxRows: Map<Address, number>;
  /** Channels whose rows could not be claimed, until the next attempt. */
  rests: Rests<Hex>;
  /** Channels that not all endpoints show as paid, until these are asked again. */
  disagreed: Rests<Hex>;
  /** When all endpoints were asked last, by the clock. */
  lookedAt: number;
  /** Channels with unclaimed money as seen then, by the endpoint with most of it at risk. */
  sightings: Map<Hex, ChannelReading>;
  /** Channels that were claimed on a sighting, until the next attempt. */
  sighted: Rests<Hex>;
  /** Authorizers without a key that were reported. */
  reported: Set<Address>;
}

export function createClaimMemory(): ClaimMemory {
  return {
    maxRows: new Map(),
    rests: new Map(),
    disagreed: new Map(),
    lookedAt: Number.NEGATIVE_INFINITY,
    sightings: new Map(),
    sighted: new Map(),
    reported: new Set(),
    receivers: undefined,
  };
}
