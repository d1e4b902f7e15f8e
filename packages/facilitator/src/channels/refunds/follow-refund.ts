import { type OpenRefund, readRefund } from "../../ledger/channels/channel-refunds.ts";
import { readChannelState } from "../../ledger/channels/channel-state.ts";
import { endRefund, noteRefundEvent } from "../../ledger/channels/move-refund.ts";
import { baseOf } from "../../schemes/batch-settlement/admit-voucher.ts";
import { withSignal } from "../../settle/evidence/with-signal.ts";
import { backOff } from "../back-off.ts";
import type { ChannelsContext } from "../channels-context.ts";
import { finalByHeads } from "../watch/final-by-heads.ts";
import { readBlock } from "../watch/read-block.ts";
import { type ChannelVotes, isUnanimous, withinTime } from "../watch/read-by-each.ts";
import { isStateMissing, readChannels } from "../watch/read-channels.ts";
import { noteDispute } from "./note-dispute.ts";
import { readMoved } from "./read-moved.ts";
import { maxBlocksAtOnce, type RefundedEvent, readRefunded, sumOf } from "./read-refunded.ts";
import {
  failRefund,
  isOverdue,
  openCase,
  type RefundMemory,
  type RefundsContext,
  type SentRefund,
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
 * @returns it where its nonce has passed at the head
 */
export async function followRefund(
  channels: RefundsContext,
  memory: RefundMemory,
  refund: OpenRefund,
): Promise<SentRefund | undefined> {
  const { signed } = refund;
  const found = await openCase(channels, refund);
  if (found === undefined || signed === undefined) return undefined;
  const sent = { ...found, signed };
  if (found.atHead.refundNonce > signed.nonce) return sent;
  await noteEvent(channels, refund, undefined);
  await resend(channels, memory, sent);
  return undefined;
}

/**
 * Notes the event that its buyer waits for, by the first endpoint that answers. It ends nothing.
 *
 * @throws RpcError, ZodError where its blocks cannot be read in time
 */
export async function noteShown(
  channels: RefundsContext,
  { disputes }: Pick<RefundMemory, "disputes">,
  { refund, signed, atHead }: SentRefund,
): Promise<void> {
  const { context, settlement, place, stopping } = channels;
  // Its logs become more with each block. A refund whose end waits for endpoints rests, too.
  const dispute = disputes.get(refund.id);
  const isResting = dispute !== undefined && dispute.until > context.clock.now();
  if (isResting || (dispute !== undefined && refund.event !== undefined)) return;
  const { channelId, sinceNumber } = refund;
  const soFar = { next: atHead.block.number, atOnce: maxBlocksAtOnce, events: [] };
  const isEnough = (events: readonly RefundedEvent[]) =>
    (sumOf(events)?.refunded ?? 0n) >= signed.amount;
  const asked = { contract: place.contract, channelId, first: sinceNumber + 1, isEnough };
  const { rpc } = settlement.network;
  await withinTime(context.clock, (signal) => readRefunded(withSignal(rpc, signal), asked, soFar), [
    stopping,
  ]);
  await noteEvent(channels, refund, sumOf(soFar.events));
}

async function noteEvent(
  { context }: ChannelsContext,
  refund: OpenRefund,
  event: ReturnType<typeof sumOf>,
): Promise<void> {
  if (event?.hash === refund.event?.hash && event?.refunded === refund.event?.refunded) return;
  await noteRefundEvent(context.ledger, refund, event);
  await context.faultPoint("channel_refund_noted");
}

/**
 * Whether the nonce has passed finally, and the mirror has what the refund has moved. Then each
 * endpoint is asked. Those that differed rest before.
 */
export async function isFinal(
  channels: ChannelsContext,
  memory: RefundMemory,
  sent: SentRefund,
): Promise<boolean> {
  const { context } = channels;
  const { refund, signed } = sent;
  const { nonce } = signed;
  if ((memory.disputes.get(refund.id)?.until ?? 0) > context.clock.now()) return false;
  const final = await readFinal(channels, memory, sent);
  const mirror = await readChannelState(context.ledger, refund);
  if (final === undefined || final.refundNonce <= nonce || mirror === undefined) return false;
  // Before it is unlocked, the balance that vouchers are decided by has fallen.
  // Where nothing moves, the mirror is not read again.
  const isRead = !mirror.isMoving || mirror.block.number >= final.block.number;
  return mirror.refundNonce > nonce && isRead;
}

/**
 * Ends a refund where each endpoint that has a say shows the nonce as passed, finally: no signature
 * for it is good any more. Else one may be: it rests.
 *
 * It is done by the largest sum of events that an endpoint shows. Another refund by the same key
 * may have used its nonce up, and moved less: the buyer may ask for what is left. Where none has
 * shown an event in its time, it fails.
 *
 * @param options.votes at `finalAfter`
 */
export async function conclude(
  channels: RefundsContext,
  memory: RefundMemory,
  { votes, ...sent }: SentRefund & { votes: ChannelVotes | undefined },
): Promise<void> {
  const { context, metrics, place } = channels;
  const { refund, signed, channel, atHead } = sent;
  const hasPassed = isUnanimous(votes, ({ refundNonce }) => refundNonce > signed.nonce);
  if (votes === undefined || !hasPassed) return noteDispute(context, memory, { refund, votes });
  const { most, isAwaited } = await readMoved(channels, memory, { ...sent, votes });
  // One may have left the event out, or have made it smaller.
  if (isAwaited) return noteDispute(context, memory, { refund, votes: { awaited: 1 } });
  if (most === undefined && !isOverdue(channels, refund)) {
    return backOff(memory.disputes, refund.id, { now: context.clock.now() });
  }
  for (const each of [memory.disputes, memory.rests, memory.inVain, memory.shown]) {
    each.delete(refund.id);
  }
  memory.formerHeads.delete(refund.channelId);
  // What this look has noted counts, too.
  const event = most ?? (await readRefund(context.ledger, refund.id))?.event;
  if (event === undefined) {
    const isEmpty = atHead.balance <= baseOf(channel.charged, atHead.totalClaimed);
    return failRefund(channels, refund, isEmpty ? noBalance : notSent);
  }
  if (await endRefund(context.ledger, refund, { state: "done", event })) {
    metrics.refunds.inc({ network: place.network, outcome: "done" });
    await context.faultPoint("channel_refund_ended");
  }
}

/** The channel at `finalAfter`. A node may keep too few states for that: see `finalByHeads`. */
async function readFinal(
  { context: { clock }, settlement: { network }, place: { contract } }: ChannelsContext,
  { formerHeads }: RefundMemory,
  { refund: { channelId }, atHead }: SentRefund,
) {
  const { rpc, finalAfter } = network;
  const head = atHead.block;
  if (finalAfter === 0) return atHead;
  try {
    const block = await readBlock(rpc, head.number - finalAfter);
    if (block === undefined) return undefined;
    return (await readChannels(network, { contract, ids: [channelId], block })).get(channelId);
  } catch (error) {
    if (!isStateMissing(error)) throw error;
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
  sent: SentRefund,
): Promise<void> {
  const { clock, logger } = channels.context;
  const { refund, signed, atHead } = sent;
  const { transaction } = refund;
  if (transaction === undefined || transaction.state === "open") return;
  if (transaction.state === "included" && transaction.blockNumber > atHead.block.number) return;
  const now = clock.now();
  if ((rests.get(refund.id)?.until ?? 0) > now) return;
  backOff(rests, refund.id, { now });
  const { channelId: channel, network } = refund;
  const error = await tryRefund(channels, sent, signed);
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
  await sendByKey(channels, sent, signed);
}
