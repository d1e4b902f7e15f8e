import type { Hex } from "@coinslot/protocol";
import { dropDue } from "../../ledger/channels/channel-dues.ts";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { readByEach } from "../watch/read-by-each.ts";
import { isPast } from "./choose-claims.ts";

/**
 * Takes channels off the dues of which nothing is to be claimed: the chain has paid all of it
 * finally, or too little is left. None of them is read again before its next charge. So each
 * endpoint that answers has to show the sum as claimed.
 *
 * @returns the others
 * @throws DatabaseError
 */
export async function dropPaid(
  { context: { ledger }, settings, settlement, place }: ChannelsContext,
  dues: readonly ClaimableChannel[],
): Promise<ClaimableChannel[]> {
  const now = ledger.now();
  /** The least sum that has to be claimed, by channel. */
  const leastOf = new Map<Hex, bigint>();
  for (const due of dues) {
    const { charged, channelId } = due.channel;
    const isPaid = (due.state?.final?.totalClaimed ?? 0n) >= charged;
    if (isDust(due, settings, now)) leastOf.set(channelId, charged - settings.claimCost + 1n);
    else if (isPaid) leastOf.set(channelId, charged);
  }
  if (leastOf.size === 0) return [...dues];
  const ids = [...leastOf.keys()];
  const votes = await readByEach(settlement.network, { contract: place.contract, ids });
  const left: ClaimableChannel[] = [];
  for (const due of dues) {
    const { channel } = due;
    const least = leastOf.get(channel.channelId);
    const isAgreed =
      least !== undefined &&
      votes.length > 0 &&
      votes.every((vote) => (vote.get(channel.channelId)?.totalClaimed ?? -1n) >= least);
    const claimed = channel.charged;
    if (!isAgreed || !(await dropDue(ledger, { ...channel, claimed }))) left.push(due);
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
