import type { Hex } from "@coinslot/protocol";
import { dropDue } from "../../ledger/channels/channel-dues.ts";
import type { ClaimableChannel } from "../../ledger/channels/claimable.ts";
import { backOff } from "../back-off.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { isUnanimous } from "../watch/read-by-each.ts";
import { isPast } from "./choose-claims.ts";
import type { ClaimMemory } from "./claim-memory.ts";

/** Channels of one look: a slow endpoint returns them in its time, and no other decides alone. */
const maxChannels = 1_000;

/**
 * Takes channels off the dues of which nothing is to be claimed: the chain has paid all of it
 * finally, or too little is left. None of them is read again before its next charge. So each
 * endpoint that has a say has to show the sum as claimed, finally. A channel that they disagree
 * about, or that one has not returned, rests. No claim waits for that: a later round has the votes.
 *
 * @returns the others
 * @throws DatabaseError
 */
export async function dropPaid(
  channels: ChannelsContext,
  memory: ClaimMemory,
  dues: readonly ClaimableChannel[],
): Promise<ClaimableChannel[]> {
  const { context, settings } = channels;
  const { ledger, clock } = context;
  const now = clock.now();
  const restOf = (channelId: Hex) => memory.disagreed.get(channelId)?.until ?? 0;
  const votes = memory.finalLook.take();
  const asked: Hex[] = [];
  const left: ClaimableChannel[] = [];
  for (const due of dues) {
    const { channel } = due;
    const { channelId, charged } = channel;
    const least = leastPaid(due, settings, ledger.now());
    const ofChannel = votes?.get(channelId);
    const isAgreed =
      least !== undefined && isUnanimous(ofChannel, ({ totalClaimed }) => totalClaimed >= least);
    if (isAgreed) memory.disagreed.delete(channelId);
    else if (least !== undefined && ofChannel) backOff(memory.disagreed, channelId, { now });
    if (isAgreed && (await dropDue(ledger, { ...channel, claimed: charged }))) continue;
    left.push(due);
    if (least !== undefined && restOf(channelId) <= now) asked.push(channelId);
  }
  // In turn: those that were not asked about lately come first.
  asked.sort((a, b) => restOf(a) - restOf(b));
  if (asked.length > 0) memory.finalLook.begin(asked.slice(0, maxChannels));
  return left;
}

/** The least sum that has to be claimed of a channel; `undefined`: something is to be claimed. */
function leastPaid(
  due: ClaimableChannel,
  settings: ChannelsContext["settings"],
  now: number,
): bigint | undefined {
  const { charged } = due.channel;
  if (isDust(due, settings, now)) return charged - settings.claimCost + 1n;
  return (due.state?.final?.totalClaimed ?? 0n) < charged ? undefined : charged;
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
