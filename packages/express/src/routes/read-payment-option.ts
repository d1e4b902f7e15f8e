import {
  type Address,
  channelScheme,
  isNetwork,
  type Network,
  type PaymentFlow,
} from "@coinslot/protocol";
import type { Request } from "express";
import { isRecord } from "../is-record.ts";
import type { MaybePromise } from "../maybe-promise.ts";
import type { TokenPrice } from "./payment-routes.ts";
import {
  type ChannelOptionTerms,
  channelMembers,
  readChannelOption,
} from "./read-channel-option.ts";
import { readExtra } from "./read-extra.ts";
import { readPayTo } from "./read-pay-to.ts";
import { onExtra, type PriceContext, readPrice } from "./read-price.ts";

/** A function of the seller's, called once for each request; its result is read then. */
export type AskSeller = (request: Request) => MaybePromise<unknown>;

/** A parsed way to pay. */
export interface PaymentTerms {
  /** Of a way to pay by channels; `undefined`: by the scheme `exact`. */
  channel: ChannelOptionTerms | undefined;
  network: Network;
  price: TokenPrice | AskSeller;
  payTo: Address | AskSeller;
  /** Of this way alone; else that of the route. */
  maxTimeoutSeconds: number | undefined;
  /** Members that go to the buyer beside the token's domain. */
  extra: Record<string, unknown>;
}

const members = new Set(["scheme", "network", "price", "payTo", "maxTimeoutSeconds", "extra"]);

/**
 * Reads a way to pay, and reports every problem.
 *
 * @returns `undefined` when there is a problem.
 */
export function readPaymentOption(
  option: unknown,
  options: {
    paymentFlow: PaymentFlow;
    /** Reason why a time is too short for the route's handler. */
    problemOfTime: (maxTimeoutSeconds: number) => string | undefined;
    tell: (problem: string) => void;
  },
): PaymentTerms | undefined {
  const { paymentFlow, tell } = options;
  if (!isRecord(option)) {
    tell(" must be an object");
    return undefined;
  }
  const { scheme } = option;
  const isChannel = scheme === channelScheme;
  for (const name of Object.keys(option)) {
    const isKnown = members.has(name) || (isChannel && channelMembers.has(name));
    if (!isKnown) tell(` has an unknown member: ${name}`);
  }
  if (scheme !== "exact" && !isChannel) tell(`.scheme must be "exact" or "${channelScheme}"`);
  const channel = isChannel ? readChannelOption(option, tell) : undefined;
  const { network } = option;
  if (typeof network !== "string" || !isNetwork(network)) {
    tell('.network must be an EVM chain in CAIP-2 form, such as "eip155:9745"');
    return undefined;
  }
  const { maxTimeoutSeconds } = option;
  if (maxTimeoutSeconds !== undefined && !isWholeSeconds(maxTimeoutSeconds)) {
    tell(".maxTimeoutSeconds must be a positive whole number");
    return undefined;
  }
  const tooShort = maxTimeoutSeconds && options.problemOfTime(maxTimeoutSeconds);
  if (tooShort) tell(`.${tooShort}`);
  const read = readExtra(option.extra, paymentFlow);
  if (!read.ok) for (const problem of read.problems) tell(`.${onExtra(problem)}`);
  const extra = read.ok ? read.extra : {};
  const context = { network, paymentFlow, extra };
  const price = readPriceOption(option.price, context, tell);
  const payTo = readPayToOption(option.payTo, tell);
  if (price === undefined || payTo === undefined) return undefined;
  return { channel, network, price, payTo, maxTimeoutSeconds, extra };
}

/** Returns whether a value is a time as in an offer: positive, in whole seconds. */
export function isWholeSeconds(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

function readPriceOption(
  price: unknown,
  context: PriceContext,
  tell: (problem: string) => void,
): TokenPrice | AskSeller | undefined {
  if (isFunction(price)) return price;
  const read = readPrice(price, context);
  if (read.ok) return read.price;
  for (const problem of read.problems) tell(`.price ${problem}`);
  return undefined;
}

function readPayToOption(
  payTo: unknown,
  tell: (problem: string) => void,
): Address | AskSeller | undefined {
  if (isFunction(payTo)) return payTo;
  const read = readPayTo(payTo);
  if (read.ok) return read.payTo;
  tell(`.payTo ${read.problem}`);
  return undefined;
}

function isFunction(value: unknown): value is AskSeller {
  return typeof value === "function";
}
