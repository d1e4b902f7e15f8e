import type { Address, Hex } from "@coinslot/protocol";
import type { KnownReceivers } from "./receivers-of.ts";

/** First rest of a row that could not be claimed. */
export const firstRestMs = 5_000;

/** Memory of one process about its plans. Losing it costs trials, and gas at worst. */
export interface ClaimMemory extends KnownReceivers {
  /** Rows of the next claim of an authorizer: half as many after one that was reverted. */
  maxRows: Map<Address, number>;
  /** Rows that could not be claimed, until the next attempt. By the monotonic clock. */
  rests: Map<Hex, { until: number; attempts: number }>;
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

/** Each attempt doubles the rest. */
export function restRow(memory: ClaimMemory, channelId: Hex, now: number, mostMs: number): void {
  const attempts = (memory.rests.get(channelId)?.attempts ?? 0) + 1;
  const restMs = Math.min(mostMs, firstRestMs * 2 ** Math.min(attempts - 1, 10));
  memory.rests.set(channelId, { until: now + restMs, attempts });
}
