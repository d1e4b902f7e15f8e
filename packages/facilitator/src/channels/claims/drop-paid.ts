import type { Hex } from "@coinslot/protocol";
import { dropDue } from "../../ledger/channels/channel-dues.ts";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { backOff } from "../back-off.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readByEach } from "../watch/read-by-each.ts";
import { isPast } from "./choose-claims.ts";
import type { ClaimMemory } from "./claim-memory.ts";

/**
 * Takes channels off the dues of which nothing is to be claimed: the chain has paid all of it
 * finally, or too little is left. None of them is read again before its next charge. So each
 * endpoint that answers has to show the sum as claimed, finally. A channel that they disagree about
 * rests.
 *
 * @returns the others
 * @throws DatabaseError
 */
export async function dropPaid(
  channels: ChannelsContext,
  memory: ClaimMemory,
  dues: readonly ClaimableChannel[],
): Promise<ClaimableChannel[]> {
  const { context, settings, settlement } = channels;
  const { ledger, clock } = context;
  const now = clock.now();
  /** The least sum that has to be claimed, by channel. */
  const leastOf = new Map<Hex, bigint>();
  const finalIds: Hex[] = [];
  const headIds: Hex[] = [];
  for (const due of dues) {
    const { charged, channelId } = due.channel;
    if ((memory.disagreed.get(channelId)?.until ?? 0) > now) continue;
    const final = due.state?.final;
    const isPaid = (final?.totalClaimed ?? 0n) >= charged;
    const isSmall = isDust(due, settings, ledger.now());
    if (!isPaid && !isSmall) continue;
    leastOf.set(channelId, isSmall ? charged - settings.claimCost + 1n : charged);
    // A node may keep too few states for a final one.
    (final === undefined ? headIds : finalIds).push(channelId);
  }
  if (leastOf.size === 0) return [...dues];
  const { finalAfter: depth } = settlement.network;
  const votes = new Map([
    ...(await readByEach(channels, { ids: finalIds, depth })),
    ...(await readByEach(channels, { ids: headIds })),
  ]);
  const left: ClaimableChannel[] = [];
  for (const due of dues) {
    const { channel } = due;
    const { channelId, charged } = channel;
    const least = leastOf.get(channelId);
    const readings = votes.get(channelId) ?? [];
    const isAgreed =
      least !== undefined &&
      readings.length > 0 &&
      readings.every(({ totalClaimed }) => totalClaimed >= least);
    if (isAgreed) memory.disagreed.delete(channelId);
    else if (least !== undefined) backOff(memory.disagreed, channelId, { now });
    if (!isAgreed || !(await dropDue(ledger, { ...channel, claimed: charged }))) left.push(due);
  }
  return left;
}

/**
 * Too little to be claimed, and no charge has come for long: the rest of a buyer that has gone.
 * Else each of them would be read with every block, for ever. The next charge makes all of it due
 * again.
 */
function isDust(
  { channel: { charged, last }, state, since }: ClaimableChannel,
  { claimCost, claimAfterMs }: ChannelsContext["settings"],
  now: number,
): boolean {
  if (state === undefined || state.isMoving) return false;
  return charged - state.totalClaimed < claimCost && isPast(last?.at ?? since, claimAfterMs, now);
}
