import {
  type Address,
  type ChannelCorrection,
  type ChannelRefundOutcome,
  type ChannelRefundRequest,
  type ChannelRefusalReason,
  channelRefusalReasons,
} from "@coinslot/protocol";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import { type ChannelRefund, findLastRefund } from "../../ledger/channels/channel-refunds.ts";
import { releaseRun } from "../../ledger/channels/reserve-run.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import { channelStateOf } from "../sales/channel-run.ts";
import type { ChannelNetwork, SalesContext } from "../sales/sales-context.ts";
import { correct, observe } from "../sales/serve-voucher.ts";
import type { ObservedChannel } from "../watch/observed-channel.ts";
import type { NetworkRefunds } from "./start-channel-refunds.ts";

/** A channel of a refund in its lane. */
interface Asked {
  key: ChannelKey;
  request: ChannelRefundRequest;
  seen: ObservedChannel;
}

type Begun = { state: "begun"; id: string } | { state: "known"; refund: ChannelRefund };

/** Looks at a channel that other processes have reserved, or whose delivery mark is not written. */
const maxAttempts = 5;
/** Longer together than another process keeps an idle reservation. */
const pauseMs = 300;
/** The same payload has the answer of an ended refund for this long. */
const repeatMs = 600_000;
const busyForALittle = { state: "busy", retryAfterSeconds: 1 } as const;
const pending = { state: "pending", retryAfterSeconds: 2 } as const;

/**
 * Serves a refund whose voucher was checked: waits for the channel's requests, compares, locks, and
 * then waits for its event without holding the channel's queue.
 *
 * A voucher is its bearer's: a claim may have shown it. So any reader of the chain may ask for a
 * refund of a channel whose charges were all claimed. It pays the channel's payer, and the limits
 * bound its gas.
 */
export async function serveRefund(
  context: SalesContext,
  network: ChannelNetwork,
  request: ChannelRefundRequest,
): Promise<ChannelRefundOutcome> {
  const { refunds } = network;
  if (refunds === undefined) return refuse("payload_type");
  const refunding = { ...network, refunds };
  if (request.amount === 0n) return refuse("refund_amount_invalid");
  const { channelId } = request.presented.voucher;
  const release = await context.lanes.enter(channelId);
  if (release === undefined) return busyForALittle;
  let begun: Begun | ChannelRefundOutcome;
  try {
    begun = await look(context, refunding, request);
  } finally {
    release();
  }
  if (request.isGone()) return { state: "gone" };
  if (begun.state === "known" && begun.refund.event !== undefined) {
    return answer(refunding, begun.refund);
  }
  if (begun.state !== "begun" && begun.state !== "known") return begun;
  const refund = await refunds.wait(begun.state === "begun" ? begun.id : begun.refund.id);
  return refund === undefined ? pending : answer(refunding, refund);
}

export type Refunding = ChannelNetwork & { refunds: NetworkRefunds };

/** Looks at the channel, and locks it; anew where another process has changed it meanwhile. */
async function look(
  context: SalesContext,
  network: Refunding,
  request: ChannelRefundRequest,
): Promise<Begun | ChannelRefundOutcome> {
  const { channelId } = request.presented.voucher;
  const key: ChannelKey = { network: network.network, contract: network.contract, channelId };
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    if (attempt > 0) await context.pause(pauseMs);
    if (request.isGone()) return { state: "gone" };
    const seen = await observe(context, network, request);
    switch (seen.kind) {
      case "limited":
        return { state: "busy", retryAfterSeconds: Math.ceil(seen.limitedMs / 1_000) };
      case "stale":
        return { state: "busy", retryAfterSeconds: seen.retryAfterSeconds };
      case "absent":
        return refuse("channel_not_found");
    }
    const begun = await begin(context, network, { key, request, seen });
    if (begun !== undefined) return begun;
  }
  return busyForALittle;
}

/** @returns `undefined` where another process has the channel, or has charged it meanwhile */
async function begin(
  context: SalesContext,
  network: Refunding,
  { key, request, seen }: Asked,
): Promise<Begun | ChannelRefundOutcome | undefined> {
  const { refunds } = network;
  const { channel, state } = seen;
  const { voucher, channelConfig } = request.presented;
  const ceiling = voucher.maxClaimableAmount;
  const last = await findLastRefund(context.ledger, key);
  const isSame = last?.ceiling === ceiling && last.asked === request.amount;
  if (channel.isRefunding) {
    if (last === undefined || last.endedAt !== undefined) return undefined;
    return isSame ? { state: "known", refund: last } : { state: "busy", retryAfterSeconds: 5 };
  }
  const base = baseOf(channel.charged, state.totalClaimed);
  if (ceiling !== base) return correctRefund(context, network, { key, request, seen });
  const isEmpty = state.balance <= base;
  if (last?.state === "done" && isSame && (isEmpty || isRecent(context, last))) {
    return { state: "known", refund: last };
  }
  if (isEmpty) return refuse("refund_no_balance");
  // A rest is given back at any size, once: another one needs a deposit before.
  const isRest = request.amount === undefined || request.amount >= state.balance - base;
  if (!isRest && (request.amount ?? 0n) < refunds.cost) return refuse("refund_amount_invalid");
  if (!refunds.signs(channelConfig.receiverAuthorizer)) return refuse("authorizer_not_configured");
  const locked = await lockSeen(context, network, {
    key,
    signer: channelConfig.payerAuthorizer,
    seen,
    asked: request.amount,
    last,
  });
  if (locked.outcome === "limited") {
    const retryAfterSeconds = Math.max(1, Math.ceil(locked.retryAfterMs / 1_000));
    return { state: "limited", retryAfterSeconds };
  }
  return "id" in locked ? { state: "begun", id: locked.id } : undefined;
}

/**
 * Locks a channel whose requests wait for this one, for a refund of what is not charged.
 *
 * @param options.id of an operator's act: no limit holds for it
 */
export async function lockSeen(
  context: SalesContext,
  { refunds }: Refunding,
  {
    key,
    signer,
    seen: { channel, state },
    asked,
    last,
    id,
  }: {
    key: ChannelKey;
    signer: Address;
    seen: ObservedChannel;
    asked: bigint | undefined;
    /** The channel's newest refund. */
    last?: ChannelRefund | undefined;
    id?: string;
  },
): ReturnType<NetworkRefunds["begin"]> {
  const token = await context.leases.take(key.channelId);
  if (token !== undefined) {
    await context.ledger.pendingEnds.write(token, () =>
      releaseRun(context.ledger, { ...key, token }),
    );
  }
  const ceiling = baseOf(channel.charged, state.totalClaimed);
  return refunds.begin({
    ...key,
    id,
    signer,
    seen: channel.charged,
    ceiling,
    asked,
    isPaidFor: ceiling - (last?.ceiling ?? 0n) >= refunds.cost,
  });
}

/** A part that was asked for twice in a row is one question whose answer was lost. */
function isRecent({ ledger }: SalesContext, { asked, endedAt }: ChannelRefund): boolean {
  if (asked === undefined || endedAt === undefined) return false;
  return Math.abs(ledger.now() - endedAt) < repeatMs;
}

function correctRefund(
  context: SalesContext,
  { quotas }: Refunding,
  { key, request, seen }: Asked,
): Promise<ChannelCorrection | ReturnType<typeof refuse>> {
  const signer = request.presented.channelConfig.payerAuthorizer;
  const served = { key, signer, quotas, state: seen.state, leave: () => undefined };
  return correct(context, served, { presented: request.presented, channel: seen.channel });
}

/** The answer to a refund as far as the chain has come. */
async function answer(
  { network, contract, refunds }: Refunding,
  refund: ChannelRefund,
): Promise<ChannelRefundOutcome> {
  if (refund.state === "failed") return { state: "refused", reason: reasonOf(refund) };
  const { event } = refund;
  if (event === undefined) return pending;
  const { channelId } = refund;
  const reading = await refunds.read(channelId);
  if (reading === undefined) return pending;
  const key = { network, contract, channelId };
  const charged = baseOf(refund.ceiling, reading.totalClaimed);
  return {
    state: "refunded",
    transaction: event.hash,
    amount: event.refunded,
    channelState: channelStateOf({ key, state: reading }, charged),
  };
}

function reasonOf({ reason }: ChannelRefund): ChannelRefusalReason {
  const known = channelRefusalReasons.find((each) => each === reason);
  return known ?? "invalid_batch_settlement_evm_refund_transaction_failed";
}

type RefundReason = ChannelRefusalReason extends `invalid_batch_settlement_evm_${infer Name}`
  ? Name
  : never;

function refuse(name: RefundReason) {
  return { state: "refused", reason: `invalid_batch_settlement_evm_${name}` } as const;
}
