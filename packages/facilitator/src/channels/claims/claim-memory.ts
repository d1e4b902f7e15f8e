import type { Address, Hex } from "@coinslot/protocol";
import type { Rests } from "../back-off.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { type ChannelLook, createChannelLook } from "../watch/channel-look.ts";
import type { SettleMemory } from "./settle-receivers.ts";

/** A withdrawal that an endpoint shows: its channel, and the number of the endpoint. */
export type SightingId = `${Hex}/${number}`;

/** Memory of one process about its plans. Losing it costs trials, and gas at worst. */
export interface ClaimMemory extends SettleMemory {
  /** Rows of the next claim of an authorizer: half as many after one that was reverted. */
  maxRows: Map<Address, number>;
  /** Channels whose rows could not be claimed, until the next attempt. */
  rests: Rests<Hex>;
  /** Highest sums that were paid finally, of channels that are due. */
  paid: Map<Hex, bigint>;
  /** Channels that not all endpoints have shown as paid, until these are asked again. */
  disagreed: Rests<Hex>;
  look: ChannelLook;
  /** The same at `finalAfter`, about channels that may have been paid. */
  finalLook: ChannelLook;
  /** When all endpoints were asked about due channels last, by the clock. */
  askedAt: Map<Hex, number>;
  /** When all endpoints are asked about all channels next, by the clock. */
  auditAt: number;
  /** When they are asked about those of `seen` next. */
  lookAt: number;
  /** Sightings of the last look that were not answered. */
  seen: Set<SightingId>;
  /** Sightings that were answered by a claim, until the next attempt. */
  sighted: Rests<SightingId>;
  /** When heads far apart, for which payouts wait, were reported last, by the clock. */
  payoutsWarnedAt: number;
  /** Since when each look has found a head below the progress of payouts, by the clock. */
  payoutsBehindSince: number | undefined;
  /** When missing logs of payouts are reported next, by the clock. */
  payoutsLostAt: number | undefined;
  /** Authorizers without a key that were reported. */
  reported: Set<Address>;
}

/** @param wake begins a round */
export function createClaimMemory(channels: ChannelsContext, wake: () => void): ClaimMemory {
  const { finalAfter } = channels.settlement.network;
  return {
    look: createChannelLook(channels, { depth: 0, onDone: wake }),
    finalLook: createChannelLook(channels, { depth: finalAfter, onDone: wake }),
    maxRows: new Map(),
    rests: new Map(),
    disagreed: new Map(),
    askedAt: new Map(),
    paid: new Map(),
    auditAt: Number.NEGATIVE_INFINITY,
    lookAt: Number.POSITIVE_INFINITY,
    seen: new Set(),
    sighted: new Map(),
    payoutsWarnedAt: Number.NEGATIVE_INFINITY,
    payoutsBehindSince: undefined,
    payoutsLostAt: undefined,
    reported: new Set(),
    receivers: new Map(),
    settleRests: new Map(),
    settleReportedAt: new Map(),
  };
}

/**
 * Claims become smaller after some were reverted, and have one row at least.
 *
 * @param largest rows of the largest one that was reverted
 */
export function halveRows({ maxRows }: Pick<ClaimMemory, "maxRows">, largest: number): void {
  if (largest <= 1) return;
  for (const [authorizer, rows] of maxRows) {
    maxRows.set(authorizer, Math.max(1, Math.floor(Math.min(rows, largest) / 2)));
  }
}
