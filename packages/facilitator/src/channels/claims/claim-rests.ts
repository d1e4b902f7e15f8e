import type { Hex } from "@coinslot/protocol";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { backOff, maxRestMs, type Rests } from "../back-off.ts";
import type { ClaimMemory } from "./claim-memory.ts";

/** A row whose payer withdraws rests for this part of its delay, at most. */
const restShare = 50;

type Due = Pick<ClaimableChannel, "config" | "state">;
type Row = Due & { channel: { channelId: Hex } };

/** Longest rest of a row, in milliseconds. */
export function maxRestMsOf(due: Due | undefined): number {
  if (due?.state?.withdrawal === undefined) return maxRestMs;
  return Math.min(maxRestMs, (due.config.withdrawDelay * 1_000) / restShare);
}

/**
 * Whether a row rests. A rest from before its withdrawal was seen is shortened. It is not ended: a
 * node that hides the withdrawal in turn would have a claim sent each time.
 */
export function isResting(rests: Rests<Hex>, row: Row, now: number): boolean {
  const rest = rests.get(row.channel.channelId);
  if (rest === undefined) return false;
  rest.until = Math.min(rest.until, now + maxRestMsOf(row));
  return rest.until > now;
}

/** Rows that were paid finally, by a node that shows them as unpaid now: it may go on for ever. */
export function restPaid(
  { rests, paid }: Pick<ClaimMemory, "rests" | "paid">,
  rows: readonly (Row & { totalClaimed: bigint })[],
  now: number,
): void {
  for (const row of rows) {
    const { channelId } = row.channel;
    if (row.totalClaimed > (paid.get(channelId) ?? -1n)) continue;
    backOff(rests, channelId, { now, maxMs: maxRestMsOf(row) });
  }
}
