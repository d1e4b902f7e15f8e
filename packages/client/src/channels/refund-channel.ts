import { type Hex, isSameAddress } from "@coinslot/protocol";
import { bytesToHex } from "viem";
import { findPaidUrl } from "../offer/paid-url.ts";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import { dropBody } from "../send/drop-body.ts";
import { hashBody, type RepeatableRequest, toInit } from "../send/repeatable-request.ts";
import { sendPayment } from "../send/send-payment.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";
import { readWays } from "../wires/registry.ts";
import {
  awaitChain,
  type ChannelLedger,
  freeExposure,
  lookAtChain,
  maxPolls,
  type SeenChannel,
} from "./channel-ledger.ts";
import { type ChannelRecord, larger } from "./channel-record.ts";
import { type ChannelCandidate, findChannels } from "./choose-channel.ts";
import { judgeRejection } from "./judge-rejection.ts";
import { signVoucher } from "./sign-voucher.ts";

/**
 * Result of a question for a refund.
 *
 * - `refunded`: the own node shows that all of the money is back.
 * - `refused`: the seller has answered, and not all of the money is back. Its `reason` says why.
 * - `silent`: no answer, or no offer with the terms of this channel.
 * - `nothing`: the escrow holds nothing that is not charged.
 */
export interface ChannelRefund {
  id: Hex;
  state: "refunded" | "refused" | "silent" | "nothing";
  /** The sum that is back, in the token's smallest unit. */
  amount: bigint;
  reason?: string | undefined;
  /** Unix seconds until which a signed deposit may still be executed. */
  depositUntil?: number | undefined;
}

/** The question, and the one after a correction. */
const maxQuestions = 2;

/** The channels that a seller offers at a URL; none when it is silent. */
export async function findOfferedChannels(
  context: PayingFetchContext,
  request: RepeatableRequest,
): Promise<{ candidates: ChannelCandidate[]; url: URL }> {
  const { channels, protocols, assets, now, allowInsecureHttp, persistence } = context;
  const none = { candidates: [], url: request.url };
  if (channels === undefined) return none;
  const slow = AbortSignal.timeout(persistence.attemptTimeoutMs);
  const signal = request.signal ? AbortSignal.any([request.signal, slow]) : slow;
  const response = await context
    .fetch(request.url.href, toInit({ ...request, signal }))
    .catch(() => undefined);
  request.signal?.throwIfAborted();
  if (response?.status !== 402) {
    if (response !== undefined) dropBody(response);
    return none;
  }
  const timeoutMs = Math.min(10_000, persistence.attemptTimeoutMs);
  const ways = await readWays(response, { protocols, request, now: now(), timeoutMs });
  dropBody(response);
  let url: URL;
  try {
    url = findPaidUrl({ request, response, allowInsecureHttp });
  } catch (error) {
    // A seller that leads elsewhere gets no voucher, and its channels can be withdrawn.
    if (error instanceof PaymentError) return none;
    throw error;
  }
  const { networks } = context.chains;
  // An offer above the limit for one payment is one to be refunded at all the same.
  const open = (ways ?? []).map((way) => ({ ...way, amount: "0" }));
  return { ...findChannels({ ways: open, protocols, assets, networks, channels }), url };
}

/** Asks the seller of a channel for all that it has not charged, under the lane's lock. */
export async function refundOnLane(
  context: PayingFetchContext,
  ledger: ChannelLedger,
  asked: {
    record: ChannelRecord;
    candidates: readonly ChannelCandidate[];
    request: RepeatableRequest;
    url: URL;
  },
): Promise<ChannelRefund> {
  const { request, url } = asked;
  const { id } = asked.record;
  const seen = await lookAtChain(ledger, asked.record);
  if (seen === undefined) {
    throw new PaymentError("chain_unreadable", "No endpoint returned the channel");
  }
  let { record } = seen;
  const before = record.balance;
  if (before <= record.charged) {
    await freeExposure(ledger, record);
    return { id, state: "nothing", amount: 0n };
  }
  const candidate = asked.candidates.find((each) => hasTermsOf(each, record));
  if (candidate === undefined) return { id, state: "silent", amount: 0n };
  let reason: string | undefined;
  let polls = 1;
  for (let count = 1; count <= maxQuestions; count += 1) {
    const payment = await signRefund(context, { record, candidate, request, url });
    const options = { payment, request, wasSent: false, onSend: () => {}, returnsRejections: true };
    let sent: Awaited<ReturnType<typeof sendPayment>>;
    try {
      sent = await sendPayment({ ...context, ...options });
    } catch (error) {
      if (request.signal?.aborted || !(error instanceof PaymentError)) throw error;
      // The answer may be lost, and the refund under way.
      return awaitRefund(ledger, { record, before, state: "silent", polls: 1 });
    }
    dropBody(sent.response);
    reason = sent.outcome.reason;
    if (sent.outcome.state === "settled") polls = maxPolls;
    if (sent.response.status !== 402) break;
    const question = { response: sent.response, reason, candidate, record };
    const verdict = await judgeRejection(ledger, question);
    if (verdict.kind !== "again") break;
    record = verdict.record;
  }
  const ended = await awaitRefund(ledger, { record, before, state: "refused", polls });
  return { ...ended, reason };
}

function hasTermsOf({ channel }: ChannelCandidate, { network, config }: ChannelRecord): boolean {
  return (
    channel.network === network &&
    isSameAddress(channel.token, config.token) &&
    isSameAddress(channel.receiver, config.receiver) &&
    isSameAddress(channel.receiverAuthorizer, config.receiverAuthorizer) &&
    channel.withdrawDelay === config.withdrawDelay
  );
}

/** Signs a voucher for what was charged: it allows the seller nothing more. */
async function signRefund(
  context: PayingFetchContext,
  parts: {
    record: ChannelRecord;
    candidate: ChannelCandidate;
    request: RepeatableRequest;
    url: URL;
  },
): Promise<SignedPayment> {
  const { record, candidate, request, url } = parts;
  const { id, network, config, charged } = record;
  const voucher = await signVoucher(context.account, record, charged);
  const idempotencyKey = bytesToHex(context.randomBytes(32)).slice(2);
  const payload = { type: "refund" as const, channelConfig: config, voucher };
  const { method } = request;
  return {
    request: { method, url: request.url.href, bodyHash: hashBody(request) },
    sendTo: url.href,
    header: candidate.writeChannel(payload, idempotencyKey),
    idempotencyKey,
    terms: {
      network,
      asset: config.token,
      payer: config.payer,
      payTo: config.receiver,
      amount: "0",
      nonce: bytesToHex(context.randomBytes(32)),
      validBefore: Math.floor(context.now() / 1000) + context.maxValiditySeconds,
      channel: { id, ceiling: `${charged}` },
    },
  };
}

/**
 * Believes the own node alone: the money is back once the balance has fallen. A part of it is no
 * refund: the rest may need a withdrawal.
 */
async function awaitRefund(
  ledger: ChannelLedger,
  wanted: { record: ChannelRecord; before: bigint; state: "refused" | "silent"; polls: number },
): Promise<ChannelRefund> {
  const { record, before, state, polls } = wanted;
  const { id } = record;
  const isThere = (seen: SeenChannel) => seen.record.balance < before;
  const seen = await awaitChain(ledger, { record, polls, isThere });
  if (seen === undefined) return { id, state, amount: 0n };
  const { balance, charged, claimed } = seen.record;
  const isAll = balance <= larger(charged, claimed);
  await freeExposure(ledger, record);
  return { id, state: isAll ? "refunded" : state, amount: before - balance };
}
