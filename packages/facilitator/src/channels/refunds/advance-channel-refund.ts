import { RpcError } from "@coinslot/chain";
import type { ChannelRefusalReason } from "@coinslot/protocol";
import * as z from "zod";
import type { OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import { readChannelState } from "../../ledger/channels/channel-state.ts";
import { endRefund, noteRefundEvent, reopenRefund } from "../../ledger/channels/move-refund.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import { backOff } from "../back-off.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { finalByHeads } from "../watch/final-by-heads.ts";
import { isUnanimous, readByEach } from "../watch/read-by-each.ts";
import { isStateMissing } from "../watch/read-channels.ts";
import { planRefund, type RefundPlan } from "./plan-refund.ts";
import { readRefunded, sumOf } from "./read-refunded.ts";
import {
  isOverdue,
  openCase,
  type RefundCase,
  type RefundMemory,
  readAtDepth,
} from "./refund-round.ts";
import { sendRefund, tryRefund } from "./send-refund.ts";

const notSent = "invalid_batch_settlement_evm_refund_transaction_failed";
/** Transactions of a refund in vain, after which it rests. */
const maxInVain = 3;
const dayMs = 86_400_000;
const noBalance = "invalid_batch_settlement_evm_refund_no_balance";

/**
 * Brings one refund as far as the chain allows: signs it, sends it again, notes its events, ends
 * it. Another process may do the same at once, and may have died at any step before.
 *
 * @throws RefundMovedError, RpcError, ZodError, DatabaseError; what was stored stays
 */
export async function advanceChannelRefund(
  channels: ChannelsContext,
  memory: RefundMemory,
  refund: OpenRefund,
): Promise<void> {
  const found = await openCase(channels, refund);
  if (found === undefined) return;
  if (refund.state !== "locked") return followRefund(channels, memory, found);
  try {
    await signRefund(channels, found);
  } catch (error) {
    // A node may lack what it is decided by for good.
    const isFault = error instanceof RpcError || error instanceof z.ZodError;
    if (!isFault || !isOverdue(channels, refund)) throw error;
    await fail(channels, refund, notSent);
  }
}

/** `locked`: nothing that is good is signed. So it may end, whatever a node returns. */
async function signRefund(channels: ChannelsContext, found: RefundCase): Promise<void> {
  const { ledger } = channels.context;
  const { refund } = found;
  const decided = await planRefund(channels, found);
  switch (decided.kind) {
    case "waits":
      if (isOverdue(channels, refund)) await fail(channels, refund, notSent);
      return;
    case "refused":
      return fail(channels, refund, decided.reason);
    case "ended":
      await endRefund(ledger, refund, { state: "done", event: decided.event });
      return;
    case "plan": {
      const error = await tryRefund(channels, found, decided);
      if (error !== undefined) return refuse(channels, refund, error);
      const isStored = await send(channels, found, decided);
      if (!isStored && isOverdue(channels, refund)) await fail(channels, refund, notSent);
    }
  }
}

/** Returns whether it is on the disk, and on its way. */
async function send(
  channels: ChannelsContext,
  found: RefundCase,
  plan: Omit<RefundPlan, "kind">,
): Promise<boolean> {
  const { context, settings, metrics, place } = channels;
  const { refund, config } = found;
  const { network } = place;
  const signer = settings.signers.find(({ address }) => address === config.receiverAuthorizer);
  if (signer === undefined) {
    // Its key was configured at the lock.
    context.logger.error(
      { network, channel: refund.channelId, authorizer: config.receiverAuthorizer },
      "a channel's refund waits for the key of its receiverAuthorizer, which is not configured",
    );
    return false;
  }
  const outcome = await sendRefund(channels, signer, { found, plan });
  if (outcome === "stored") metrics.refunds.inc({ network, outcome: "sent" });
  else {
    const { channelId: channel } = refund;
    context.logger.warn({ network, channel, because: outcome }, "a channel's refund waits");
  }
  return outcome === "stored";
}

/** `sent`: a signature for its nonce may be anywhere, until that nonce has finally passed. */
async function followRefund(
  channels: ChannelsContext,
  memory: RefundMemory,
  found: RefundCase,
): Promise<void> {
  const { context, settlement, place } = channels;
  const { refund, atHead, head } = found;
  const { signed, channelId, sinceNumber } = refund;
  if (signed === undefined) return;
  const isPassed = atHead.refundNonce > signed.nonce;
  const events = isPassed
    ? await readRefunded(settlement.network.rpc, {
        contract: place.contract,
        channelId,
        from: sinceNumber + 1,
        to: head.number,
      })
    : [];
  const event = sumOf(events);
  if (event?.hash !== refund.event?.hash || event?.refunded !== refund.event?.refunded) {
    await noteRefundEvent(context.ledger, refund, event);
    await context.faultPoint("channel_refund_noted");
  }
  if (!isPassed) return resend(channels, memory, { ...found, signed });
  const { finalAfter } = settlement.network;
  const final = await readFinal(channels, memory, found);
  const mirror = await readChannelState(context.ledger, refund);
  if (final === undefined || final.refundNonce <= signed.nonce) return;
  // Before it is unlocked, the balance that vouchers are decided by has fallen.
  const isMirrored =
    mirror !== undefined &&
    mirror.refundNonce > signed.nonce &&
    // Where nothing moves, the mirror is not read again.
    (!mirror.isMoving || mirror.block.number >= final.block.number);
  if (!isMirrored || !(await isPassedForEach(channels, found, signed.nonce))) return;
  const last = head.number - finalAfter;
  const moved = sumOf(events.filter(({ blockNumber }) => blockNumber <= last));
  await conclude(channels, memory, { ...found, signed, moved });
}

/**
 * The nonce has finally passed, so no signature for it is good. It is done, unless another refund
 * has used the nonce up and moved less.
 */
async function conclude(
  channels: ChannelsContext,
  memory: RefundMemory,
  { refund, channel, atHead, signed, moved }: RefundCase & Signed & { moved: Moved },
): Promise<void> {
  const { context, metrics, place } = channels;
  const { ledger, logger } = context;
  const left = atHead.balance - baseOf(channel.charged, atHead.totalClaimed);
  const { network } = place;
  memory.rests.delete(refund.id);
  memory.inVain.delete(refund.id);
  memory.formerHeads.delete(refund.channelId);
  if (moved === undefined) {
    // A node may have left the event out.
    if (isOverdue(channels, refund)) await fail(channels, refund, left > 0n ? notSent : noBalance);
    return;
  }
  const wanted = refund.asked === undefined ? left : refund.asked - moved.refunded;
  if (moved.refunded < signed.amount && wanted > 0n && left > 0n) {
    logger.warn(
      { network, channel: refund.channelId },
      "another refund of a channel has used the nonce of ours up; what is left is signed again",
    );
    return reopenRefund(ledger, refund);
  }
  if (await endRefund(ledger, refund, { state: "done", event: moved })) {
    metrics.refunds.inc({ network, outcome: "done" });
    await context.faultPoint("channel_refund_ended");
  }
}

type Signed = { signed: NonNullable<OpenRefund["signed"]> };
type Moved = ReturnType<typeof sumOf>;

/** Whether each endpoint that has a say shows the nonce as passed, finally: else it may be good. */
async function isPassedForEach(
  channels: ChannelsContext,
  { refund: { channelId } }: RefundCase,
  nonce: bigint,
): Promise<boolean> {
  const depth = channels.settlement.network.finalAfter;
  const votes = await readByEach(channels, { ids: [channelId], depth });
  return isUnanimous(votes.get(channelId), ({ refundNonce }) => refundNonce > nonce);
}

/** The channel at `finalAfter`. A node may keep too few states for that: see `finalByHeads`. */
async function readFinal(
  { settlement, place }: ChannelsContext,
  { formerHeads }: RefundMemory,
  found: RefundCase,
) {
  const { network } = settlement;
  try {
    return await readAtDepth({ settlement, place }, found, network.finalAfter);
  } catch (error) {
    if (!isStateMissing(error)) throw error;
    const { head, atHead, refund } = found;
    const { channelId } = refund;
    const readings = { head, atHead: new Map([[channelId, atHead]]) };
    return (await finalByHeads(network, formerHeads, readings)).get(channelId);
  }
}

/**
 * Its transaction has gone, or was reverted with the nonce unused: the same nonce and amount go
 * again, after a rest that doubles. A token may call its payer, whose code then fails it in each
 * block. So after three transactions in vain it is sent once a day.
 */
async function resend(
  channels: ChannelsContext,
  { rests, inVain }: RefundMemory,
  found: RefundCase & Signed,
): Promise<void> {
  const { clock, logger } = channels.context;
  const { refund, signed, head } = found;
  const { transaction } = refund;
  if (transaction === undefined || transaction.state === "open") return;
  if (transaction.state === "included" && transaction.blockNumber > head.number) return;
  const now = clock.now();
  if ((rests.get(refund.id)?.until ?? 0) > now) return;
  backOff(rests, refund.id, { now });
  const { channelId: channel, network } = refund;
  const error = await tryRefund(channels, found, signed);
  if (error !== undefined) {
    logger.error({ network, channel, error }, "a channel's refund cannot be sent at the moment");
    return;
  }
  const known = inVain.get(refund.id);
  if (transaction.state === "included" && transaction.blockNumber !== known?.block) {
    const tries = (known?.tries ?? 0) + 1;
    inVain.set(refund.id, { tries, block: transaction.blockNumber });
    if (tries >= maxInVain) {
      rests.set(refund.id, { until: now + dayMs, attempts: 0 });
      return;
    }
  }
  await send(channels, found, signed);
}

async function refuse(channels: ChannelsContext, refund: OpenRefund, error: string): Promise<void> {
  const { context, place } = channels;
  const { network } = place;
  context.logger.error(
    { network, channel: refund.channelId, error },
    "the escrow refuses a channel's refund; nothing was signed",
  );
  await fail(channels, refund, "invalid_batch_settlement_evm_refund_simulation_failed");
}

async function fail(
  { context, metrics, place: { network } }: ChannelsContext,
  refund: OpenRefund,
  reason: ChannelRefusalReason,
): Promise<void> {
  if (!(await endRefund(context.ledger, refund, { state: "failed", reason }))) return;
  metrics.refunds.inc({ network, outcome: "failed" });
  await context.faultPoint("channel_refund_ended");
}
