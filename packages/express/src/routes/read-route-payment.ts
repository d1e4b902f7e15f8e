import { minimumSettlementSeconds, type PaymentFlow } from "@coinslot/protocol";
import { type DiscoveryTerms, readRouteDiscovery } from "../discovery/route-discovery.ts";
import { isRecord } from "../is-record.ts";
import { isMppMode, type MppMode } from "../mpp-options.ts";
import { problemOfOfferSize } from "../offer/offer-size.ts";
import type { UnpaidResponseBody } from "../offer/unpaid-context.ts";
import { isWholeSeconds, type PaymentTerms, readPaymentOption } from "./read-payment-option.ts";
import { type RefundTerms, readRefundPolicy } from "./read-refund.ts";

/** A route's parsed payment settings, with every default in its place. */
export interface RouteTerms {
  accepts: readonly PaymentTerms[];
  description: string | undefined;
  mimeType: string | undefined;
  /** Instead of the URL of the request. */
  resource: string | undefined;
  unpaidResponseBody: UnpaidResponseBody | undefined;
  paymentFlow: PaymentFlow;
  maxTimeoutSeconds: number;
  handlerTimeoutSeconds: number;
  /** `undefined`: by the method of the request. */
  onDisconnect: "release" | "settle" | undefined;
  varyHeaders: readonly string[];
  /** `undefined`: as the middleware. */
  mpp: MppMode | undefined;
  /** Of payments that were settled and not delivered; `undefined`: none. */
  refund: RefundTerms | undefined;
  /** `false`: not listed. */
  discovery: DiscoveryTerms | false;
}

const defaultMaxTimeoutSeconds = 300;
const defaultHandlerTimeoutSeconds = 60;
const maxWords = 1024;
const maxUrl = 2048;

const members = new Set([
  "accepts",
  "description",
  "mimeType",
  "resource",
  "unpaidResponseBody",
  "paymentFlow",
  "maxTimeoutSeconds",
  "handlerTimeoutSeconds",
  "onDisconnect",
  "varyHeaders",
  "mpp",
  "refund",
  "discovery",
]);

/**
 * Reads a route's payment settings, and reports every problem. It trusts no types: a seller may
 * write plain JavaScript, and a misspelt member would silently change the charge.
 *
 * @returns `undefined` when there is a problem.
 */
export function readRoutePayment(
  config: unknown,
  tell: (problem: string) => void,
): RouteTerms | undefined {
  let isSound = true;
  const fault = (problem: string): void => {
    isSound = false;
    tell(problem);
  };
  if (!isRecord(config)) {
    fault("must be an object with `accepts`");
    return undefined;
  }
  for (const name of Object.keys(config)) {
    if (!members.has(name)) fault(`has an unknown member: ${name}`);
  }
  const paymentFlow = config.paymentFlow ?? "authorization";
  if (paymentFlow !== "authorization" && paymentFlow !== "upfront") {
    fault('paymentFlow must be "authorization" or "upfront"');
    return undefined;
  }
  const { onDisconnect } = config;
  if (onDisconnect !== undefined && onDisconnect !== "release" && onDisconnect !== "settle") {
    fault('onDisconnect must be "release" or "settle"');
    return undefined;
  }
  const { maxTimeoutSeconds = defaultMaxTimeoutSeconds } = config;
  const { handlerTimeoutSeconds = defaultHandlerTimeoutSeconds } = config;
  if (!isWholeSeconds(maxTimeoutSeconds)) {
    fault("maxTimeoutSeconds must be a positive whole number");
    return undefined;
  }
  if (!isPositive(handlerTimeoutSeconds) || handlerTimeoutSeconds > maxTimerSeconds) {
    fault(`handlerTimeoutSeconds must be a positive number up to ${maxTimerSeconds}`);
    return undefined;
  }
  const problemOfTime = (time: number): string | undefined => {
    const needed = handlerTimeoutSeconds + minimumSettlementSeconds;
    if (paymentFlow === "upfront" || time > needed) return undefined;
    return `maxTimeoutSeconds is ${time}, and must exceed ${needed}: the handler's ${handlerTimeoutSeconds} seconds and ${minimumSettlementSeconds} for settling`;
  };
  const tooShort = problemOfTime(maxTimeoutSeconds);
  if (tooShort !== undefined) fault(tooShort);
  const accepts = readAccepts(config.accepts, { paymentFlow, problemOfTime, tell: fault });
  const description = readWords(config.description, "description", fault);
  const mimeType = readWords(config.mimeType, "mimeType", fault);
  const resource = readResource(config.resource, fault);
  const { unpaidResponseBody } = config;
  if (unpaidResponseBody !== undefined && !isUnpaidResponseBody(unpaidResponseBody)) {
    fault("unpaidResponseBody must be a function");
    return undefined;
  }
  const tooLong = problemOfOfferSize({ accepts, description, mimeType, resource });
  if (tooLong !== undefined) fault(tooLong);
  const varyHeaders = readHeaderNames(config.varyHeaders, fault);
  const { mpp } = config;
  if (mpp !== undefined && !isMppMode(mpp)) {
    fault('mpp must be "auto", true or false');
    return undefined;
  }
  const discovery = readRouteDiscovery(config.discovery, fault);
  const refund = readRefundPolicy(config.refund, fault);
  if (!isSound) return undefined;
  return {
    accepts,
    description,
    mimeType,
    resource,
    unpaidResponseBody,
    paymentFlow,
    maxTimeoutSeconds,
    handlerTimeoutSeconds,
    onDisconnect,
    varyHeaders,
    mpp,
    refund,
    discovery,
  };
}

// Node's timers count milliseconds in 31 bits.
const maxTimerSeconds = 2_147_483;

function readAccepts(
  value: unknown,
  options: Parameters<typeof readPaymentOption>[1],
): PaymentTerms[] {
  const { tell } = options;
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (value === undefined || entries.length === 0)
    tell("accepts must name at least one way to pay");
  if (entries.length > 16)
    tell("accepts has more than 16 payment options, which do not fit a header");
  return entries.flatMap((entry, index) => {
    const at = Array.isArray(value) ? `accepts[${index}]` : "accepts";
    if (entry === undefined) return [];
    const tellAt = (problem: string) => tell(`${at}${problem}`);
    return readPaymentOption(entry, { ...options, tell: tellAt }) ?? [];
  });
}

function readWords(
  value: unknown,
  name: string,
  tell: (problem: string) => void,
): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && value.length <= maxWords) return value;
  tell(`${name} must be a string of at most ${maxWords} characters`);
  return undefined;
}

function readResource(value: unknown, tell: (problem: string) => void): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && value.length <= maxUrl && /^https?:\/\/\S+$/.test(value)) {
    if (URL.canParse(value)) return value;
  }
  tell(`resource must be an absolute URL of http or https, of at most ${maxUrl} characters`);
  return undefined;
}

function isUnpaidResponseBody(value: unknown): value is UnpaidResponseBody {
  return typeof value === "function";
}

function readHeaderNames(value: unknown, tell: (problem: string) => void): string[] {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (value === undefined) return [];
  const read = names.flatMap((name) => (isHeaderName(name) ? name.toLowerCase() : []));
  if (read.length !== names.length || !Array.isArray(value)) {
    tell("varyHeaders must be a list of header names");
  }
  return read;
}

function isHeaderName(value: unknown): value is string {
  return typeof value === "string" && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(value);
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
