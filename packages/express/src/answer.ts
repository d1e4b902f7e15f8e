import type { SettleResponse } from "@coinslot/protocol";
import type { Request, Response } from "express";
import { openPage } from "./browser/open-page.ts";
import { clearRedemption } from "./browser/redemption.ts";
import { wantsPage } from "./browser/wants-page.ts";
import { countVisit } from "./count-visit.ts";
import type { MaybePromise } from "./maybe-promise.ts";
import type { Offer } from "./offer/offer.ts";
import { resourceOf } from "./offer/resource.ts";
import { askSeller, SellerFunctionError } from "./offer/seller-function-error.ts";
import { unpaidContextOf } from "./offer/unpaid-context.ts";
import type { Refusal } from "./refusals.ts";
import { emptyUnread } from "./replay/request-body.ts";
import { asSent, endWith, type SentBody } from "./response/held-answer.ts";
import { exposePaymentHeaders, makeUncacheable } from "./response/response-headers.ts";
import { readUnpaidBody, type UnpaidBytes } from "./routes/read-unpaid-body.ts";
import type { MatchedPayment, Visit } from "./sale.ts";
import { unpaidError } from "./wires/payment-required-answer.ts";
import type { OfferPart } from "./wires/wire.ts";

const json = "application/json; charset=utf-8";

/**
 * Answers 402 to a request that brought no payment. The body is the seller's own if there is one, a
 * page for people if a browser asks, else JSON.
 */
export function answerUnpaid(visit: Visit, offer: Offer): MaybePromise<void> {
  const { request, route, settings } = visit;
  const isAsked = route.unpaidResponseBody !== undefined || settings.unpaidAnswer !== undefined;
  // Most unpaid requests are of programs, whose answer waits for nothing.
  if (isAsked || wantsPage(request.headers)) return answerUnpaidBy(visit, offer);
  answerPaymentRequired(visit, { offer, error: unpaidError });
}

async function answerUnpaidBy(visit: Visit, offer: Offer): Promise<void> {
  const { request, route, settings } = visit;
  // A page pays by a transfer: it opens no channels.
  const ways = offer.filter(({ channelTerms }) => channelTerms === undefined);
  const payable = ways.map(({ requirements }) => requirements);
  const accepts = offer.map(({ requirements }) => requirements);
  const { unpaidAnswer: ask } = settings;
  const { unpaidResponseBody: askRoute } = route;
  const unpaidBody = askRoute
    ? await askBody("unpaidResponseBody", route.key, () => askRoute(unpaidContextOf(request)))
    : ask && (await askBody("unpaidAnswer", route.key, () => ask({ request, accepts })));
  const isPage = unpaidBody === undefined && payable.length > 0 && wantsPage(request.headers);
  if (!isPage) return answerPaymentRequired(visit, { offer, error: unpaidError, unpaidBody });
  const page = await openPage(visit, payable);
  if (page === undefined) return;
  clearRedemption(visit);
  answerPaymentRequired(visit, { offer, error: unpaidError, unpaidBody: page });
}

/** @returns `undefined` where the seller's function leaves the body to us */
async function askBody(
  hook: string,
  routeKey: string,
  ask: () => unknown,
): Promise<UnpaidBytes | undefined> {
  const said = await askSeller(hook, routeKey, ask);
  if (said === undefined || said === null) return undefined;
  const read = readUnpaidBody(said);
  if (read.ok) return read.answer;
  throw new SellerFunctionError(`${hook} of "${routeKey}" returned ${read.problem}`);
}

/** Answers 402 with the accepted ways to pay, and the reason why the payment was refused. */
export function answerPaymentRequired(
  visit: Visit,
  options: {
    offer: Offer;
    error: string;
    /** True if the payment has moved money, where that is said. */
    charged?: boolean;
    /** Hash of the transaction that moved it. */
    transaction?: string;
    unpaidBody?: UnpaidBytes | undefined;
  },
): void {
  const { request, response } = visit;
  const { unpaidBody, ...message } = options;
  countVisit(visit, options.error);
  const { parts, body } = visit.writeOffer({ resource: resourceOf(visit), ...message });
  const contentType = unpaidBody?.contentType ?? mediaTypeFor(request, parts);
  const sent = unpaidBody === undefined ? body : asSent(unpaidBody.body);
  send(response, { status: 402, parts, contentType, body: sent });
}

/** The media type of a wire, where the request names it: its body holds the members of all. */
function mediaTypeFor({ headers }: Request, parts: readonly OfferPart[]): string {
  const accept = headers.accept ?? "";
  const named = parts.find(
    ({ mediaType }) => mediaType !== undefined && accept.includes(mediaType),
  );
  return named?.mediaType ?? json;
}

/** Answers a payment that was sent for settlement and is not settled, with its receipt. */
export function answerUnsettled(order: MatchedPayment, settlement: SettleResponse): void {
  const { response, presented, offer } = order;
  const { wire, credential } = presented;
  const { errorReason: error = "unexpected_settle_error" } = settlement;
  wire.writeReceipt(response, settlement, credential);
  const refusal = wire.refuse({ kind: "unsettled", settlement });
  if (refusal === undefined) answerPaymentRequired(order, { offer, error });
  else refuseVisit(order, refusal, error);
}

/** Answers a payment that is refused before any settlement. */
export function answerInvalid(
  visit: Visit,
  {
    offer,
    presented: { wire },
    reason,
  }: Pick<MatchedPayment, "offer" | "presented"> & { reason: string },
): void {
  const refusal = wire.refuse({ kind: "invalid", reason });
  if (refusal !== undefined) refuseVisit(visit, refusal, reason);
  else answerPaymentRequired(visit, { offer, error: reason });
}

/**
 * Answers a settled payment whose handler has reached its maximum of runs, and names its
 * transaction. Nothing is left to buy with it, and its payer may ask for the money back.
 */
export function answerUsedUp(order: MatchedPayment, settlement: SettleResponse): void {
  const { response, presented, offer } = order;
  const { transaction } = settlement;
  const { wire, credential } = presented;
  const refusal = wire.refuse({ kind: "used_up", settlement });
  // A wire may write its receipt into no error.
  response.statusCode = refusal?.status ?? 402;
  wire.writeReceipt(response, settlement, credential);
  if (refusal !== undefined) refuseVisit(order, refusal);
  else
    answerPaymentRequired(order, { offer, error: "payment_used_up", charged: true, transaction });
}

/**
 * Answers a payment that is given back: it buys nothing any more, and its answer is not sent again.
 * Names the transaction that took the money.
 */
export function answerRefunded(order: MatchedPayment, settlement: SettleResponse): void {
  const { presented, offer } = order;
  const { transaction } = settlement;
  const refusal = presented.wire.refuse({ kind: "refunded", settlement });
  if (refusal !== undefined) refuseVisit(order, refusal);
  else answerPaymentRequired(order, { offer, error: "payment_refunded", transaction });
}

/**
 * Answers a visit with a refusal, and counts it.
 *
 * @param reason the reason, where the refusal's code says less
 */
export function refuseVisit(visit: Visit, refusal: Refusal, reason: string = refusal.error): void {
  countVisit(visit, reason);
  answerRefusal(visit.response, refusal);
}

/** Answers with an error in JSON: never a stack, a path, a key or an address of ours. */
export function answerRefusal(response: Response, refusal: Refusal): void {
  const { status, retryAfterSeconds, error, message, transaction, charged } = refusal;
  if (retryAfterSeconds !== undefined) response.setHeader("Retry-After", retryAfterSeconds);
  // Do not wait for the rest of the body.
  if (status === 413 || error === "request_dropped") response.setHeader("Connection", "close");
  const body = Buffer.from(JSON.stringify({ error, message, transaction, charged }));
  send(response, { status, contentType: json, body: asSent(body) });
}

/** Answers in JSON by itself, without the handler, in no cache. */
export function answerJson(
  response: Response,
  { status, body }: { status: number; body: object },
): void {
  send(response, { status, contentType: json, body: asSent(Buffer.from(JSON.stringify(body))) });
}

function send(
  response: Response,
  {
    status,
    parts = [],
    contentType,
    body,
  }: { status: number; parts?: readonly OfferPart[]; contentType: string; body: SentBody },
): void {
  response.statusCode = status;
  // Before our own headers: it looks at each one that is set.
  makeUncacheable(response);
  for (const part of parts) part.writeHead?.(response);
  response.setHeader("Content-Type", contentType);
  response.setHeader("Content-Length", body.length);
  exposePaymentHeaders(response);
  endWith(response, body);
  // At once: a pipelined answer may wait for as long as the connection's earlier ones do.
  emptyUnread(response.req);
}
