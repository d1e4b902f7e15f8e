import type { Hex } from "@coinslot/protocol";
import type { Channel } from "../../ledger/channels/channel.ts";
import type { ChannelRefund } from "../../ledger/channels/channel-refunds.ts";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { type ChannelVote, type ChannelVotes, readByEach } from "../watch/read-by-each.ts";

/** Content of a refund's signature. */
export interface RefundPlan {
  kind: "plan";
  nonce: bigint;
  /** Above 0. */
  amount: bigint;
  /** The channel at a head that it was decided by. */
  atHead: ChannelReading;
}

/**
 * What a locked refund gives back. `waits`: nothing may be signed yet. `empty`: nothing is left.
 */
export type RefundDecision = RefundPlan | { kind: "waits" } | { kind: "empty" };

/** A channel as each endpoint has it, at its head and `serveAfter` below. */
export interface RefundVotes {
  atHead: ChannelVotes;
  served: ChannelVotes;
}

/**
 * Asks each endpoint about the channels of all refunds at once.
 *
 * @throws what is no fault of a node
 */
export async function readRefundVotes(
  channels: ChannelsContext,
  refunds: readonly Pick<ChannelRefund, "channelId">[],
): Promise<Map<Hex, RefundVotes>> {
  const { network } = channels.settlement;
  const ids = refunds.map(({ channelId }) => channelId);
  const heads = await readByEach(channels, { ids });
  const byDepth = new Map<number, Hex[]>();
  for (const [id, { readings }] of heads) {
    const value = readings.reduce((most, { balance }) => greater(balance, most), 0n);
    const depth = network.serveAfter({ value });
    byDepth.set(depth, [...(byDepth.get(depth) ?? []), id]);
  }
  const served = await Promise.all(
    [...byDepth].map(([depth, ids]) =>
      depth === 0 ? heads : readByEach(channels, { ids, depth }),
    ),
  );
  const servedOf = (id: Hex) =>
    served.find((votes) => votes !== heads && votes.has(id))?.get(id) ?? heads.get(id);
  const votes = new Map<Hex, RefundVotes>();
  for (const [id, atHead] of heads) votes.set(id, { atHead, served: servedOf(id) ?? atHead });
  return votes;
}

/**
 * Decides by each endpoint alone, as if it was the only one. All that have a say have to come to
 * the same amount and nonce: a signature for a balance that one node has made up takes charged
 * money. One for a nonce to come is never good, and locks its channel.
 */
export function planRefund(
  { settings }: Pick<ChannelsContext, "settings">,
  { refund, channel }: { refund: Pick<ChannelRefund, "asked">; channel: Pick<Channel, "charged"> },
  votes: RefundVotes | undefined,
): RefundDecision {
  if (votes === undefined || votes.atHead.awaited > 0 || votes.served.awaited > 0) return waits;
  const terms = { charged: channel.charged, asked: refund.asked, claimCost: settings.claimCost };
  const decisions = votes.atHead.readings.flatMap((atHead) => {
    const served = votes.served.readings.find(({ endpoint }) => endpoint === atHead.endpoint);
    return served === undefined ? [] : [decide(terms, atHead, served)];
  });
  const [first, ...others] = decisions;
  if (first === undefined || !others.every((other) => isSame(first, other))) return waits;
  // Nodes that keep too few states do not know how deep the deposit is.
  const isDeep = first.kind === "empty" || votes.served.readings.some(({ isAtDepth }) => isAtDepth);
  return isDeep ? decisions.reduce(lower) : waits;
}

const waits = { kind: "waits" } as const;

/**
 * The amount is exact: balance − base, by the smaller balance of both blocks. So the signed refund
 * leaves all that was charged in the escrow, also where it is sent without the claim.
 *
 * A withdrawal that ends in between makes the balance smaller, and the signed amount would then
 * reach into charged money. So unclaimed money is claimed first while one runs.
 */
function decide(
  { charged, asked, claimCost }: { charged: bigint; asked: bigint | undefined; claimCost: bigint },
  atHead: ChannelVote,
  served: ChannelVote,
): RefundDecision {
  const base = baseOf(charged, atHead.totalClaimed);
  if (atHead.balance <= base) return { kind: "empty" };
  const left = lesser(atHead.balance, served.balance) - base;
  const amount = asked === undefined ? left : lesser(asked, left);
  // Its deposit is not deep enough.
  if (amount <= 0n) return waits;
  const isLeaving = atHead.withdrawal !== undefined || served.withdrawal !== undefined;
  const claimed = lesser(atHead.totalClaimed, served.totalClaimed);
  // Less than its gas is not claimed.
  const isTaken = isLeaving && base - claimed >= greater(claimCost, 1n);
  return isTaken ? waits : { kind: "plan", nonce: atHead.refundNonce, amount, atHead };
}

function isSame(one: RefundDecision, other: RefundDecision): boolean {
  if (one.kind !== "plan" || other.kind !== "plan") return one.kind === other.kind;
  return one.nonce === other.nonce && one.amount === other.amount;
}

/** The one whose head each node has: one of them may have made a higher one up. */
function lower(one: RefundDecision, other: RefundDecision): RefundDecision {
  if (one.kind !== "plan" || other.kind !== "plan") return one;
  return other.atHead.block.number < one.atHead.block.number ? other : one;
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function greater(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
