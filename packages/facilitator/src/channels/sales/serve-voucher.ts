import type { ChannelAdmission, ChannelCorrection, ChannelRequest } from "@coinslot/protocol";
import type { Channel, ChannelKey } from "../../ledger/channels/channel.ts";
import { readChannelAnswer } from "../../ledger/channels/channel-answers.ts";
import { isPublished } from "../../ledger/channels/channel-claims.ts";
import { reserveRun } from "../../ledger/channels/reserve-run.ts";
import { takeCharge } from "../../ledger/channels/resume-charge.ts";
import { admitVoucher } from "../../schemes/batch-settlement/admit-voucher.ts";
import type { ChannelObservation, ObservedChannel } from "../watch/observed-channel.ts";
import { correctionOf, createChannelRepeat, createChannelRun } from "./channel-run.ts";
import type { ChannelNetwork, SalesContext, ServedChannel } from "./sales-context.ts";

/** The channel's turn takes a moment; a claim or a refund takes some blocks. */
const busyForALittle = { state: "busy", retryAfterSeconds: 1 } as const;
const busyForBlocks = { state: "busy", retryAfterSeconds: 5 } as const;

const exceedsBalance = {
  state: "refused",
  reason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
} as const;

const belowClaimed = {
  state: "refused",
  reason: "invalid_batch_settlement_evm_cumulative_below_claimed",
} as const;

/** Looks at a channel that other processes change meanwhile, or have reserved. */
const maxAttempts = 5;
/** Before the third look and those after it: together longer than an idle reservation is kept. */
const pauseMs = 300;
/** Selling goes on up to this many prices, whatever the facilitator's bound: four times 20. */
const maxPricesUnclaimed = 80n;

/**
 * Serves a voucher that was checked: waits for the channel, decides by its row, and reserves where
 * that is needed. The order is that of the README of `schemes/batch-settlement`.
 */
export async function serveVoucher(
  context: SalesContext,
  network: ChannelNetwork,
  request: ChannelRequest,
): Promise<ChannelAdmission> {
  const { channelId } = request.presented.voucher;
  const key: ChannelKey = { network: network.network, contract: network.contract, channelId };
  const release = await context.lanes.enter(channelId);
  if (release === undefined) return busyForALittle;
  let isOver = false;
  const leave = (): void => {
    if (isOver) return;
    isOver = true;
    release();
  };
  let admission: ChannelAdmission | undefined;
  try {
    admission = await look(context, network, { request, key, leave });
    return admission;
  } finally {
    if (admission?.state !== "admitted" && admission?.state !== "repeated") leave();
  }
}

/** Looks at the channel, and decides; anew where another process has changed it meanwhile. */
async function look(
  context: SalesContext,
  network: ChannelNetwork,
  { request, ...visited }: Pick<ServedChannel, "key" | "leave"> & { request: ChannelRequest },
): Promise<ChannelAdmission> {
  const { channelConfig } = request.presented;
  const { quotas } = network;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    if (attempt > 1) await context.pause(pauseMs);
    if (request.isGone()) return { state: "gone" };
    const seen = await observe(context, network, request);
    if (seen.kind === "limited") {
      return { state: "busy", retryAfterSeconds: seconds(seen.limitedMs) };
    }
    // No row for a channel without money: a signature costs nothing.
    if (seen.kind === "absent") {
      return { state: "refused", reason: "invalid_batch_settlement_evm_channel_not_found" };
    }
    if (seen.kind === "stale")
      return { ...busyForBlocks, retryAfterSeconds: seen.retryAfterSeconds };
    const signer = channelConfig.payerAuthorizer;
    const served = { signer, quotas, state: seen.state, ...visited };
    const admission = await decide(context, network, { request, served, seen });
    if (admission !== undefined) return admission;
  }
  return busyForALittle;
}

/** Looks at the channel, within the caller's limit where that may cost a look at the chain. */
export async function observe(
  { looks, seenChannels }: SalesContext,
  { observer }: ChannelNetwork,
  {
    presented: { channelConfig, voucher },
    limitKey,
  }: Pick<ChannelRequest, "presented" | "limitKey">,
): Promise<ChannelObservation | { kind: "limited"; limitedMs: number }> {
  const { channelId } = voucher;
  if (limitKey === undefined || seenChannels.has(channelId)) {
    return observer.observe(channelId, channelConfig);
  }
  const look = await looks.begin(limitKey);
  if ("limitedMs" in look) return { kind: "limited", ...look };
  let isAbsent = false;
  try {
    const seen = await observer.observe(channelId, channelConfig);
    isAbsent = seen.kind === "absent";
    if (seen.kind === "observed") seenChannels.add(channelId);
    return seen;
  } finally {
    look.end({ isAbsent });
  }
}

/** @returns `undefined` where another process has the channel, or has charged it meanwhile */
async function decide(
  context: SalesContext,
  { owing }: ChannelNetwork,
  {
    request,
    served,
    seen,
  }: { request: ChannelRequest; served: ServedChannel; seen: ObservedChannel },
): Promise<ChannelAdmission | undefined> {
  const { presented, price, fingerprint, keyHash } = request;
  const channel = withMark(context, seen.channel);
  const { totalClaimed } = seen.state;
  const maxUnclaimed = maxUnclaimedFor(seen, price);
  const decided = admitVoucher(
    { voucher: presented.voucher, price, fingerprint, keyHash },
    { channel, totalClaimed, maxUnclaimed },
  );
  const seenBy = { presented, channel };
  switch (decided.kind) {
    case "repeat":
      return repeat(context, served, channel);
    case "purchase": {
      const stopped = context.stops.refusalOf(request.network, request.route);
      if (stopped !== undefined) throw stopped;
      if (!seen.isSelling) return exceedsBalance;
      if (await owing.owes(served.signer, served.key.channelId)) return exceedsBalance;
      const { seen: charged, base } = decided;
      if (await isShown(context, served, presented)) return correct(context, served, seenBy);
      return admit(context, { request, served, channel, seen: charged, base });
    }
    case "correct":
      return correct(context, served, seenBy);
    case "exceeds_balance":
    case "owing":
      return exceedsBalance;
    case "unavailable":
      return busyForBlocks;
  }
}

/**
 * Whether a claim has shown this voucher to all, who would buy with it at its payer's expense. It
 * covered more than was charged then. The calldata of claims has all that a request needs.
 */
export async function isShown(
  { ledger }: SalesContext,
  { key, state }: Pick<ServedChannel, "key" | "state">,
  { voucher: { maxClaimableAmount: ceiling, signature } }: ChannelRequest["presented"],
): Promise<boolean> {
  if (state.published === undefined || ceiling > state.published) return false;
  return isPublished(ledger, { ceiling, signature, ...key });
}

/**
 * The corrective answer. Its proof is a voucher, and one that covers more than was charged buys. So
 * none is given for a voucher that any reader of claims may present.
 */
export async function correct(
  context: SalesContext,
  served: ServedChannel,
  { presented, channel }: { presented: ChannelRequest["presented"]; channel: Channel },
): Promise<ChannelCorrection | typeof belowClaimed> {
  const { maxClaimableAmount: ceiling, signature } = presented.voucher;
  const { totalClaimed } = served.state;
  const { charged, voucher } = channel;
  const buys = voucher !== undefined && voucher.ceiling > larger(charged, totalClaimed);
  if (!buys) return correctionOf(served, channel);
  // Its buyer begins at the chain's sum, and its next voucher is its own.
  if (ceiling <= totalClaimed) return belowClaimed;
  const isPublic = await isPublished(context.ledger, { ceiling, signature, ...served.key });
  return correctionOf(served, isPublic ? { charged, voucher: undefined } : channel);
}

/** Credit on a channel at which selling stops. */
export function maxUnclaimedFor(seen: ObservedChannel, price: bigint): bigint {
  return larger(seen.maxUnclaimed, price * maxPricesUnclaimed);
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}

function larger(first: bigint, second: bigint): bigint {
  if (first > second) return first;
  return second;
}

/** The row, with a delivery that this process has not written yet. */
export function withMark({ marks }: SalesContext, channel: Channel): Channel {
  const { last, channelId } = channel;
  if (last === undefined || !marks.has(channelId, last.id)) return channel;
  return { ...channel, last: { ...last, isDelivered: true } };
}

/** Hands the answer of the last charge over again. A delivered one is there under its key alone. */
async function repeat(
  context: SalesContext,
  served: ServedChannel,
  channel: Channel,
): Promise<ChannelAdmission> {
  const { ledger } = context;
  const { last } = channel;
  if (last === undefined) return correctionOf(served, channel);
  const named = { id: last.id, ...served.key };
  const sealedAnswer =
    last.keyHash === undefined ? undefined : await readChannelAnswer(ledger, named);
  if (last.isDelivered && sealedAnswer === undefined) return correctionOf(served, channel);
  // Another process may be about to send it.
  if (!last.isDelivered && !(await takeCharge(ledger, named))) return busyForALittle;
  return {
    state: "repeated",
    repeat: createChannelRepeat(context, served, { channel, last, sealedAnswer }),
  };
}

/** @returns `undefined` where another process has the channel, or has charged it meanwhile */
async function admit(
  context: SalesContext,
  {
    request,
    served,
    channel,
    seen,
    base,
  }: {
    request: ChannelRequest;
    served: ServedChannel;
    channel: Channel;
    seen: bigint;
    base: bigint;
  },
): Promise<ChannelAdmission | undefined> {
  const { ledger, freeRuns } = context;
  const limitedMs = freeRuns.limitOf(served.signer);
  if (limitedMs !== undefined) {
    return { state: "payer_limited", retryAfterSeconds: seconds(limitedMs) };
  }
  const { channelId } = served.key;
  const isKept = context.leases.isWorth(channelId, channel.last?.owner === ledger.processId);
  const leased = await context.leases.take(channelId);
  // Its token may be gone: another process has taken this one for dead.
  const isLeased = leased !== undefined && channel.run?.token === leased;
  // One process holds a SQLite ledger, and the lane is enough. A token there is a dead process's.
  const isAlone = ledger.dialect.engine === "sqlite" && request.isSafe && channel.run === undefined;
  const token = isLeased ? leased : isAlone ? undefined : context.createId();
  if (
    token !== undefined &&
    !isLeased &&
    !(await reserveRun(ledger, { seen, token, ...served.key }))
  ) {
    return undefined;
  }
  await context.faultPoint("channel_admitted");
  const before = channel.voucher;
  const run = createChannelRun(context, served, { request, seen, base, before, token, isKept });
  return { state: "admitted", run };
}
