import type { SettleResponse } from "@coinslot/protocol";
import { findAsset } from "../budget/spending-policy.ts";
import type { Refusal } from "../offer/offer-refused-error.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import { dropBody } from "../send/drop-body.ts";
import { OutcomeUnclearError } from "../send/outcome-unclear-error.ts";
import { noteOutcome, type PaymentOutcome } from "../send/payment-outcome.ts";
import type { RepeatableRequest } from "../send/repeatable-request.ts";
import { sendPayment } from "../send/send-payment.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";
import { bookExposureOf, type ChannelLedger } from "./channel-ledger.ts";
import type { ChannelContext } from "./channel-options.ts";
import { type ChannelRecord, larger } from "./channel-record.ts";
import { lanesOf } from "./choose-channel.ts";
import { createFreeRoom } from "./free-room.ts";
import { judgeRejection } from "./judge-rejection.ts";
import { noteReceipt } from "./note-receipt.ts";
import { openRecord } from "./open-record.ts";
import { dropDeposit, type PreparedVoucher, prepareVoucher } from "./prepare-voucher.ts";
import { type ChannelPurchase, signChannelPayment } from "./sign-voucher.ts";

/** Most vouchers of one call: the first, and those after corrections. */
const maxVouchers = 4;
const busyPauseMs = 500;

/**
 * Buys by a voucher of a payment channel, on the first free lane. All vouchers of one call together
 * raise the highest ceiling of the channel by the price at most.
 *
 * @returns a refusal when no voucher was signed: another way may pay
 * @throws PaymentError as `deliverPayment` does
 */
export async function buyByChannel(
  context: PayingFetchContext,
  channels: ChannelContext,
  purchase: ChannelPurchase,
): Promise<Response | Refusal> {
  const { candidate, request, url } = purchase;
  const { store, locks } = await channels.open();
  const { account } = context;
  const { origin } = url;
  const lanes = lanesOf({
    offer: candidate.channel,
    payer: account.address,
    origin,
    lanes: channels.lanes,
  });
  const [first, ...more] = lanes;
  const held = await locks.acquire([first.id, ...more.map(({ id }) => id)], request.signal);
  try {
    const lane = lanes[held.index] ?? first;
    const ledger: ChannelLedger = { context, store };
    const record = await openRecord(ledger, { lane, candidate, url });
    if ("code" in record) return record;
    const bought = await buyOnLane({ context, channels, ledger, purchase }, record);
    if ("code" in bought) store.forgetIfUnused(record.id);
    return bought;
  } finally {
    held.release();
  }
}

/**
 * Sends a voucher again whose outcome was unclear: the same one, so it costs nothing more.
 *
 * @throws PaymentError `channel_unknown` when the store does not have its channel
 * @throws PaymentError `over_budget` when it was signed under another store and the budget has no
 * room for it
 */
export async function resumeByChannel(
  context: PayingFetchContext,
  { request, payment }: { request: RepeatableRequest; payment: SignedPayment },
): Promise<Response> {
  const { channel } = payment.terms;
  const { store, locks } = (await context.channels?.open()) ?? {};
  const id = channel?.id.toLowerCase() ?? "";
  if (channel === undefined || store?.find(id) === undefined || locks === undefined) {
    const text = "The payment is of a channel that the file of `channels` does not have";
    throw new PaymentError("channel_unknown", text);
  }
  const held = await locks.acquire([id], request.signal);
  try {
    const ledger: ChannelLedger = { context, store };
    const freeRoom = createFreeRoom(context, request.signal);
    const ceiling = BigInt(channel.ceiling);
    const record = await raiseCeiling(ledger, { id, ceiling, freeRoom });
    const sent = await send(context, { request, payment, wasSent: true });
    if (sent.outcome.state === "settled") {
      await noteReceipt(ledger, { record, payment, response: sent.response });
    }
    return conclude(context, sent);
  } finally {
    held.release();
  }
}

async function raiseCeiling(
  ledger: ChannelLedger,
  wanted: { id: string; ceiling: bigint; freeRoom: () => Promise<boolean> },
): Promise<ChannelRecord> {
  const { id, ceiling, freeRoom } = wanted;
  const record = ledger.store.update(id, (stored) => stored);
  if (ceiling <= record.ceiling) return record;
  const asset = findAsset(ledger.context.assets, record.network, record.config.token);
  if (asset === undefined) {
    throw new PaymentError("unknown_asset", "The budget names no token of the channel");
  }
  const booking = { next: { ...record, ceiling }, ceiling: record.ceiling, asset };
  let why = await bookExposureOf(ledger, booking);
  if (why !== undefined && (await freeRoom())) why = await bookExposureOf(ledger, booking);
  if (why !== undefined) throw new PaymentError("over_budget", why);
  return ledger.store.update(id, (stored) => ({
    ...stored,
    ceiling: larger(stored.ceiling, ceiling),
  }));
}

interface Buying {
  context: PayingFetchContext;
  channels: ChannelContext;
  ledger: ChannelLedger;
  purchase: ChannelPurchase;
}

async function buyOnLane(buying: Buying, opened: ChannelRecord): Promise<Response | Refusal> {
  const answered: SignedPayment[] = [];
  try {
    return await sendVouchers(buying, opened, answered);
  } catch (error) {
    const payment = answered.at(-1);
    if (payment === undefined || error instanceof OutcomeUnclearError) throw error;
    throw asUnclear(buying.context, payment, error);
  }
}

/** @param answered collects each voucher that the seller has answered */
async function sendVouchers(
  buying: Buying,
  opened: ChannelRecord,
  answered: SignedPayment[],
): Promise<Response | Refusal> {
  const { context, channels, ledger, purchase } = buying;
  const { candidate } = purchase;
  let record = opened;
  let limit = record.ceiling + candidate.amount;
  let last: Rejected | undefined;
  for (let count = 1; count <= maxVouchers; count += 1) {
    const prepared = await prepareVoucher({ context, channels, ledger, candidate, limit }, record);
    if ("code" in prepared) {
      if (last === undefined) return prepared;
      return conclude(context, asCharged({ ...last, why: prepared.message }, record));
    }
    if (last !== undefined) dropBody(last.response);
    const payment = await sign(buying, prepared);
    const sent = await sendOrDrop(buying, prepared, payment);
    answered.push(payment);
    if (sent.outcome.state === "settled") {
      await noteReceipt(ledger, { record: prepared.record, payment, response: sent.response });
      return conclude(context, sent);
    }
    if (sent.response.status !== 402) return conclude(context, sent);
    const { reason } = sent.outcome;
    const question = { response: sent.response, reason, candidate, record: prepared.record };
    const verdict = await judgeRejection(ledger, question);
    if (verdict.kind !== "again") {
      const why = verdict.kind === "final" ? verdict.why : undefined;
      return conclude(context, { ...sent, why });
    }
    // A ceiling that this store did not know, by an own signature: it counts as signed before.
    const { ceiling } = verdict.record;
    if (ceiling > prepared.record.ceiling) limit = ceiling + candidate.amount;
    record = verdict.record;
    last = sent;
  }
  if (last === undefined) throw new TypeError("A call signs one voucher at least");
  return conclude(context, last);
}

/** An answer to a voucher, and whether an earlier attempt has an unknown outcome. */
interface Rejected {
  response: Response;
  outcome: PaymentOutcome;
  isUncertain: boolean;
  /** The reason why no other voucher follows. */
  why?: string | undefined;
}

/** A rejected voucher that its seller has shown as charged: the outcome is not "rejected". */
function asCharged(sent: Rejected, { charged }: ChannelRecord): Rejected {
  const { channel } = sent.outcome.payment.terms;
  if (channel === undefined || charged < BigInt(channel.ceiling)) return sent;
  return { ...sent, outcome: { ...sent.outcome, state: "unclear" } };
}

async function sign(buying: Buying, prepared: PreparedVoucher): Promise<SignedPayment> {
  const { context, ledger, purchase } = buying;
  let isHandedOver = false;
  try {
    const payment = await signChannelPayment(context, purchase, prepared);
    isHandedOver = context.beforeSend !== undefined;
    await context.beforeSend?.(payment);
    purchase.request.signal?.throwIfAborted();
    return payment;
  } catch (error) {
    if (!isHandedOver) await dropDeposit(ledger, prepared);
    throw error;
  }
}

/** As `send`. A new deposit that never left this process is forgotten. */
async function sendOrDrop(
  { context, ledger, purchase: { request } }: Buying,
  prepared: PreparedVoucher,
  payment: SignedPayment,
): Promise<Rejected> {
  try {
    return await send(context, { request, payment, wasSent: false });
  } catch (error) {
    const isUnsent = error instanceof PaymentError && error.code === "unreachable";
    if (isUnsent && context.beforeSend === undefined) await dropDeposit(ledger, prepared);
    throw error;
  }
}

/** Sends a voucher until the seller has decided. A busy channel gets the same one again. */
async function send(
  context: PayingFetchContext,
  given: { request: RepeatableRequest; payment: SignedPayment; wasSent: boolean },
): Promise<Rejected> {
  const { request, payment } = given;
  const { terms } = payment;
  const { host } = new URL(payment.sendTo);
  const { maxAttempts } = context.persistence;
  const onSend = (attempt: number) => context.onPayment({ state: "sent", host, terms, attempt });
  let { wasSent } = given;
  let wasAnswered = false;
  try {
    for (let count = 1; ; count += 1) {
      const options = { payment, request, wasSent, onSend, returnsRejections: true };
      const sent = await sendPayment({ ...context, ...options });
      if (sent.outcome.reason !== busyReason || count >= maxAttempts) return sent;
      wasAnswered = true;
      wasSent = sent.isUncertain;
      try {
        await context.wait(busyPauseMs * count, request.signal);
      } catch {
        return sent;
      }
      dropBody(sent.response);
    }
  } catch (error) {
    const isUnreachable = error instanceof PaymentError && error.code === "unreachable";
    // The seller has kept the voucher, and the deposit beside it, of an attempt that it answered.
    if (isUnreachable && wasAnswered) throw asUnclear(context, payment, error);
    if (!isUnreachable) context.onPayment({ state: "unclear", host, terms });
    throw error;
  }
}

/** The error of a call that failed after an answered voucher: that one can still be claimed. */
function asUnclear(
  context: PayingFetchContext,
  payment: SignedPayment,
  cause: unknown,
): OutcomeUnclearError {
  const { host } = new URL(payment.sendTo);
  context.onPayment({ state: "unclear", host, terms: payment.terms });
  const message = `A voucher was sent to ${host} and its outcome is unknown: the call failed after it`;
  return new OutcomeUnclearError({ message, payment, cause });
}

const busyReason = "invalid_batch_settlement_evm_channel_busy";

/**
 * Ends a call: notes the outcome beside the answer.
 *
 * @throws OutcomeUnclearError when the seller rejects what an earlier attempt may have paid
 */
function conclude(context: PayingFetchContext, sent: Rejected): Response {
  const { response, outcome, isUncertain, why } = sent;
  const { payment, receipt } = outcome;
  const { host } = new URL(payment.sendTo);
  const { terms } = payment;
  const reason = why ?? outcome.reason;
  if (response.status === 402 && outcome.state !== "settled" && isUncertain) {
    dropBody(response);
    context.onPayment({ state: "unclear", host, terms, reason });
    throw new OutcomeUnclearError({
      message: `A voucher was sent to ${host} and its outcome is unknown: it answered ${response.status}`,
      payment,
      status: response.status,
      reason,
    });
  }
  noteOutcome(response, { ...outcome, reason });
  const known: { receipt?: SettleResponse | undefined } = receipt === undefined ? {} : { receipt };
  context.onPayment({ state: outcome.state, host, terms, ...known, reason });
  return response;
}
