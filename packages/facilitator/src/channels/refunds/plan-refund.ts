import type { ChannelRefusalReason } from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { type ChannelVotes, isUnanimous } from "../watch/read-by-each.ts";
import { readMoved } from "./read-moved.ts";
import type { sumOf } from "./read-refunded.ts";
import { type RefundCase, type RefundsContext, readAtDepth } from "./refund-round.ts";

/** Content of a refund's signature, and of the claim before it. */
export interface RefundPlan {
  kind: "plan";
  nonce: bigint;
  /** Above 0. */
  amount: bigint;
}

/**
 * Decides what a locked refund gives back. `waits`: nothing may be signed yet. `ended`: other
 * refunds have given all of it back.
 */
export type RefundDecision =
  | RefundPlan
  | { kind: "waits" }
  | { kind: "ended"; event: NonNullable<ReturnType<typeof sumOf>> }
  | { kind: "refused"; reason: ChannelRefusalReason };

/**
 * The amount is exact: balance − base, by the smaller balance of the head and of `serveAfter`. So
 * the signed refund leaves all that was charged in the escrow, also where it is sent without the
 * claim.
 *
 * A withdrawal that ends in between makes the balance smaller, and the signed amount would then
 * reach into charged money. So unclaimed money is claimed first while one runs.
 *
 * @param votes of the channel's endpoints at their heads
 */
export async function planRefund(
  channels: RefundsContext,
  found: RefundCase,
  votes: ChannelVotes | undefined,
): Promise<RefundDecision> {
  const { settlement, settings } = channels;
  const { network } = settlement;
  const { refund, channel, head, atHead } = found;
  const base = baseOf(channel.charged, atHead.totalClaimed);
  const depth = network.serveAfter({ value: atHead.balance });
  const served = await readAtDepth(channels, found, depth);
  if (served === undefined) return { kind: "waits" };
  const left = lesser(atHead.balance, served.balance) - base;
  let before: Awaited<ReturnType<typeof readMoved>>["most"];
  if (refund.asked !== undefined || left <= 0n) {
    // One node may hide what other refunds have given back, or make it up.
    const isSameNonce = isUnanimous(votes, ({ refundNonce }) => refundNonce === atHead.refundNonce);
    if (!isSameNonce) return { kind: "waits" };
    const range = { votes, from: refund.sinceNumber + 1, to: head.number };
    const moved = await readMoved(channels, refund, range);
    if (!moved.isAgreed) return { kind: "waits" };
    before = moved.most;
  }
  const wanted = refund.asked === undefined ? left : refund.asked - (before?.refunded ?? 0n);
  const amount = lesser(wanted, left);
  if (amount <= 0n) {
    const isGivenBack = refund.asked !== undefined && wanted <= 0n;
    const isEmpty = isUnanimous(
      votes,
      ({ balance, totalClaimed }) => balance <= baseOf(channel.charged, totalClaimed),
    );
    // Its deposit is not deep enough, or one node hides it.
    if (!isGivenBack && !isEmpty) return { kind: "waits" };
    if (before !== undefined) return { kind: "ended", event: before };
    return { kind: "refused", reason: "invalid_batch_settlement_evm_refund_no_balance" };
  }
  const isLeaving = atHead.withdrawal !== undefined || served.withdrawal !== undefined;
  const claimed = lesser(atHead.totalClaimed, served.totalClaimed);
  // Less than its gas is not claimed.
  if (isLeaving && base - claimed >= greater(settings.claimCost, 1n)) return { kind: "waits" };
  const plan = { kind: "plan", nonce: atHead.refundNonce, amount } as const;
  return isAgreed(channels, found, { plan, votes }) ? plan : { kind: "waits" };
}

/**
 * Whether each endpoint that has a say leaves all that was charged beside the refund. The escrow
 * gives back less where there is less: a signature for a balance that one node has made up takes
 * charged money. One for a nonce to come is never good, and locks its channel.
 */
function isAgreed(
  { settings }: ChannelsContext,
  { channel: { charged } }: RefundCase,
  { plan: { nonce, amount }, votes }: { plan: RefundPlan; votes: ChannelVotes | undefined },
): boolean {
  const isFine = (reading: ChannelReading) => {
    if (reading.refundNonce !== nonce) return false;
    const base = baseOf(charged, reading.totalClaimed);
    const open = base - reading.totalClaimed;
    const isTaken = reading.withdrawal !== undefined && open >= greater(settings.claimCost, 1n);
    return !isTaken && reading.balance - base >= amount;
  };
  return isUnanimous(votes, isFine);
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function greater(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
