import type { OpenRefund } from "../../ledger/channels/channel-refunds.ts";
import { readChannelState } from "../../ledger/channels/channel-state.ts";
import { endRefund, noteRefundEvent, reopenRefund } from "../../ledger/channels/move-refund.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { backOff } from "../back-off.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { finalByHeads } from "../watch/final-by-heads.ts";
import { type ChannelVotes, isUnanimous } from "../watch/read-by-each.ts";
import { isStateMissing } from "../watch/read-channels.ts";
import { noteDispute } from "./note-dispute.ts";
import { readMoved } from "./read-moved.ts";
import { type RefundedEvent, readRefunded, sumOf } from "./read-refunded.ts";
import {
  failRefund,
  isOverdue,
  openCase,
  type RefundCase,
  type RefundMemory,
  type RefundsContext,
  readAtDepth,
  shownOf,
} from "./refund-round.ts";
import { sendByKey, tryRefund } from "./send-refund.ts";

const notSent = "invalid_batch_settlement_evm_refund_transaction_failed";
const noBalance = "invalid_batch_settlement_evm_refund_no_balance";
/** Transactions of a refund in vain, after which it rests. */
const maxInVain = 3;
const dayMs = 86_400_000;

/**
 * `sent`: a signature for its nonce may be anywhere, until that nonce has finally passed.
 *
 * @returns it where that is so; each endpoint is to be asked then
 */
export async function followRefund(
  channels: RefundsContext,
  memory: RefundMemory,
  refund: OpenRefund,
): Promise<PassedRefund | undefined> {
  const { clock } = channels.context;
  const { signed } = refund;
  const found = await openCase(channels, refund);
  if (found === undefined || signed === undefined) return undefined;
  if (found.atHead.refundNonce <= signed.nonce) {
    await noteEvent(channels, refund, undefined);
    await resend(channels, memory, { ...found, signed });
    return undefined;
  }
  const dispute = memory.disputes.get(refund.id);
  if (dispute !== undefined && dispute.until > clock.now()) return undefined;
  // Its logs become more with each block. While endpoints differ, they are not read again, but for
  // the event that its buyer waits for.
  const isRead = dispute === undefined || refund.event === undefined;
  const events = isRead ? await readAndNote(channels, found) : undefined;
  const passed = { ...found, signed, events };
  return (await isFinal(channels, memory, passed)) ? passed : undefined;
}

async function readAndNote(
  channels: RefundsContext,
  { refund, head }: RefundCase,
): Promise<RefundedEvent[]> {
  const { settlement, place, stopping } = channels;
  const events = await readRefunded(withSignal(settlement.network.rpc, stopping), {
    contract: place.contract,
    channelId: refund.channelId,
    from: refund.sinceNumber + 1,
    to: head.number,
  });
  await noteEvent(channels, refund, sumOf(events));
  return events;
}

async function noteEvent(
  { context }: ChannelsContext,
  refund: OpenRefund,
  event: Moved,
): Promise<void> {
  if (event?.hash === refund.event?.hash && event?.refunded === refund.event?.refunded) return;
  await noteRefundEvent(context.ledger, refund, event);
  await context.faultPoint("channel_refund_noted");
}

/** Whether the nonce has passed finally, and the mirror has what the refund has moved. */
async function isFinal(
  channels: ChannelsContext,
  memory: RefundMemory,
  found: RefundCase & Signed,
): Promise<boolean> {
  const { nonce } = found.signed;
  const final = await readFinal(channels, memory, found);
  const mirror = await readChannelState(channels.context.ledger, found.refund);
  if (final === undefined || final.refundNonce <= nonce || mirror === undefined) return false;
  // Before it is unlocked, the balance that vouchers are decided by has fallen.
  // Where nothing moves, the mirror is not read again.
  const isRead = !mirror.isMoving || mirror.block.number >= final.block.number;
  return mirror.refundNonce > nonce && isRead;
}

/**
 * Ends it where each endpoint that has a say shows the nonce as passed, finally. Else a signature
 * may be good: it rests.
 */
export async function concludeAgreed(
  channels: RefundsContext,
  memory: RefundMemory,
  { votes, ...passed }: PassedRefund & { votes: ChannelVotes | undefined },
): Promise<void> {
  const { context, settlement } = channels;
  const { refund, signed, head } = passed;
  if (!isUnanimous(votes, ({ refundNonce }) => refundNonce > signed.nonce)) {
    return noteDispute(context, memory, { refund, votes });
  }
  memory.disputes.delete(refund.id);
  const events = passed.events ?? (await readAndNote(channels, passed));
  const last = head.number - settlement.network.finalAfter;
  let moved = sumOf(events.filter(({ blockNumber }) => blockNumber <= last));
  const isShort = (sum: Moved) => sum === undefined || sum.refunded < signed.amount;
  if (isShort(moved)) {
    // A node may have left the event out, or have made it smaller.
    if (moved === undefined && !isOverdue(channels, refund)) return;
    const { most, isAwaited } = await readMoved(channels, refund, {
      votes,
      to: last,
      shown: shownOf(memory, refund.id, signed.nonce),
    });
    // Else it fails, or its rest is signed again.
    if (isShort(most) && isAwaited) return;
    moved = most;
  }
  await conclude(channels, memory, { ...passed, moved });
}

/**
 * The nonce has finally passed, so no signature for it is good. It is done, unless another refund
 * has used the nonce up and moved less, by all endpoints. Where none has shown an event in its
 * time, it fails.
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
  memory.shown.delete(refund.id);
  memory.formerHeads.delete(refund.channelId);
  if (moved === undefined) return failRefund(channels, refund, left > 0n ? notSent : noBalance);
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
/** A refund whose nonce has passed finally. `events`: `undefined` where they are to be read. */
export type PassedRefund = RefundCase & Signed & { events: RefundedEvent[] | undefined };

/** The channel at `finalAfter`. A node may keep too few states for that: see `finalByHeads`. */
async function readFinal(
  { context: { clock }, settlement, place }: ChannelsContext,
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
    const readings = { head, atHead: new Map([[channelId, atHead]]), now: clock.now() };
    const final = (await finalByHeads(network, formerHeads, readings)).get(channelId);
    if (final !== undefined) formerHeads.delete(channelId);
    return final;
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
  await sendByKey(channels, found, signed);
}
