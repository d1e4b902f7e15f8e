import {
  type ChannelCallAnswer,
  type ChannelSettlement,
  type ChannelState,
  type ChannelVerdict,
  type ChannelVerification,
  formatChannelState,
  type HostedChannels,
  isChannelMessage,
  readChannelSettlement,
  readChannelVerification,
  type SettleResponse,
  type VerifyResponse,
} from "@coinslot/protocol";
import type { Request } from "express";
import type { EventSubject } from "../events/lifecycle-event.ts";
import type { PaymentEvents } from "../events/payment-events.ts";
import { isGone } from "../response/when-gone.ts";

/** Names the owner of the key that a request presents; `undefined`: none that is known. */
export type CallerName = (request: Request) => string | undefined;

/** A request to `/verify` or `/settle` that was read, or the reason why it was not. */
export type ReadAsk =
  | { ok: true; network: string; ask: (call: Request) => Promise<VerifyResponse | SettleResponse> }
  | { ok: false; reason: string; message: string };

/** Reads a request about a channel; `undefined`: it is none, or none are served. */
export type ReadChannelAsk = (body: unknown) => ReadAsk | undefined;

/**
 * The part of a facilitator's endpoints that serves channels. An answer about one has a member
 * `extra`, as the reference implementation reads it. Events tell of a call by its answer alone.
 */
export function channelEndpoints(
  channels: HostedChannels | undefined,
  {
    caller = () => undefined,
    events,
    eventsOf,
  }: {
    caller?: CallerName | undefined;
    events?: PaymentEvents | undefined;
    /** The receiver of a call's events, and their subject. */
    eventsOf: (
      call: Request,
      subject: EventSubject,
    ) => Parameters<PaymentEvents["aroundSettle"]>[0];
  },
): { verify: ReadChannelAsk; settle: ReadChannelAsk } {
  if (channels === undefined) return { verify: () => undefined, settle: () => undefined };
  const askerOf = (call: Request) => ({
    caller: caller(call),
    isGone: () => call.res !== undefined && isGone(call.res),
  });
  return {
    verify(body) {
      if (!isChannelMessage(body)) return undefined;
      const read = readChannelVerification(body);
      if (!read.ok) return read;
      const { request } = read;
      const { network } = request.paymentRequirements;
      const ask = (call: Request) => {
        const verify = async () => verifyAnswerOf(await channels.verify(request, askerOf(call)));
        return events ? events.aroundVerify(eventsOf(call, subjectOf(request)), verify) : verify();
      };
      return { ok: true, network, ask };
    },
    settle(body) {
      if (!isChannelMessage(body)) return undefined;
      const read = readChannelSettlement(body);
      if (!read.ok) return read;
      const { request } = read;
      const { network } = request.paymentRequirements;
      const ask = (call: Request) => {
        const settle = async () =>
          settleAnswerOf(await channels.settle(request, askerOf(call)), network);
        return events ? events.aroundSettle(eventsOf(call, subjectOf(request)), settle) : settle();
      };
      return { ok: true, network, ask };
    },
  };
}

function subjectOf({
  paymentPayload: { payload },
  paymentRequirements,
}: ChannelSettlement | ChannelVerification): EventSubject {
  const { network, asset } = paymentRequirements;
  const about: EventSubject = { network, asset, payload: payload.type };
  if ("voucher" in payload) {
    about.channel = payload.voucher.channelId;
    about.payer = payload.channelConfig.payer;
  }
  return about;
}

type WireState = ReturnType<typeof formatChannelState>;

function verifyAnswerOf(verdict: ChannelVerdict): VerifyResponse & { extra?: WireState } {
  const { payer } = verdict;
  const named = payer === undefined ? {} : { payer };
  if (verdict.isValid) {
    return { isValid: true, ...named, extra: formatChannelState(verdict.channelState) };
  }
  const { reason: invalidReason, message } = verdict;
  const words = message === undefined ? {} : { invalidMessage: message };
  return { isValid: false, invalidReason, ...words, ...named };
}

function settleAnswerOf(
  answer: ChannelCallAnswer,
  network: string,
): SettleResponse & { extra?: { channelState: WireState } } {
  const { transaction = "", payer } = answer;
  const common = { transaction, network, ...(payer === undefined ? {} : { payer }) };
  switch (answer.state) {
    case "done":
      return {
        success: true,
        ...common,
        ...(answer.amount === undefined ? {} : { amount: `${answer.amount}` }),
        ...extraOf(answer.channelState),
      };
    case "pending":
      return {
        success: false,
        errorReason: "settlement_pending",
        errorMessage: "The call is pending; retry with the same payload.",
        ...common,
      };
    case "refused": {
      const { reason: errorReason, message = reasonInWords } = answer;
      return { success: false, errorReason, errorMessage: message, ...common };
    }
  }
}

const reasonInWords = "Nothing was moved by this request.";

function extraOf(state: ChannelState | undefined) {
  return state === undefined ? {} : { extra: { channelState: formatChannelState(state) } };
}
