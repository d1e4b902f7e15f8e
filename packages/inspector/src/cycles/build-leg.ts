import { comparePayment } from "../checks/compare-payment.ts";
import { nameFailure } from "../checks/name-failure.ts";
import { parseJson } from "../decode/header-value.ts";
import { readReceipts, readRefusal } from "../decode/read-answer.ts";
import { formatPrice, readOfferOfBody, readOffersOfHead } from "../decode/read-offers.ts";
import type { PresentedPayment } from "../decode/read-payment.ts";
import type { Redactor } from "../decode/redact.ts";
import { headerOf } from "../proxy/end-to-end-headers.ts";
import type { AnswerHead, RequestHead } from "../proxy/observer.ts";
import type { BodyBuffer } from "./body-buffer.ts";
import type { DecodedHeader, Leg, OfferedWay, ShownPayment } from "./cycle.ts";

/** Bound on the ways, and on the decoded messages, that are kept of one answer. */
const maxWays = 64;
const maxDecoded = 32;

/** A leg that has begun: its request's head, and its payment beside the offers before it. */
export function beginLeg(options: {
  number: number;
  head: RequestHead;
  presented: readonly PresentedPayment[];
  offered: readonly OfferedWay[];
  isRepeated: boolean;
  key: string | undefined;
  redactor: Redactor;
}): Leg {
  const { number, head, presented, offered, isRepeated, key, redactor } = options;
  const leg: Leg = {
    number,
    request: {
      method: head.method,
      target: redactor.target(head.target),
      headers: redactor.headers(head.headers),
      body: { bytes: 0, isWhole: true },
    },
    decoded: presented.slice(0, 4).map(({ decoded }) => clean(decoded, redactor)),
    ways: [],
    startedAt: head.at,
  };
  if (key !== undefined) leg.key = key;
  const [first, second] = presented;
  if (first !== undefined) {
    leg.payment = showPayment(first, offered, head.at, isRepeated);
    if (second !== undefined) {
      leg.payment.failed = { check: "form", says: "The request has two payments: one is allowed." };
    }
  }
  return leg;
}

function showPayment(
  presented: PresentedPayment,
  offered: readonly OfferedWay[],
  now: number,
  isRepeated: boolean,
): ShownPayment {
  const { wire, paid, terms, decoded } = presented;
  const { way, comparisons } = comparePayment(presented, offered, now);
  const shown: ShownPayment = { wire, comparisons, isRepeated };
  if (way !== undefined) shown.way = way;
  const network = way?.network ?? terms.network;
  const asset = way?.asset ?? terms.asset;
  if (network !== undefined) shown.network = network;
  if (asset !== undefined) shown.asset = asset;
  if (paid === undefined) {
    shown.failed = { check: "form", says: decoded.fault ?? "The payment cannot be read" };
    return shown;
  }
  shown.authorization = paid.authorization;
  const { value: amount } = paid.authorization;
  const price = { network: network ?? "", asset: paid.authorization.to, amount };
  if (amount === way?.amount) shown.price = way.price;
  else if (way !== undefined) shown.price = formatPrice({ ...price, asset: paid.authorization.to });
  return shown;
}

/** Adds an answer's head: offers and receipt of its headers. */
export function addAnswer(leg: Leg, head: AnswerHead, redactor: Redactor): void {
  const { status, statusText, headers, at } = head;
  leg.answer = {
    status,
    statusText: redactor.text(statusText),
    headers: redactor.headers(headers),
    body: { bytes: 0, isWhole: true },
  };
  leg.answeredAt = at;
  const { receipt, decoded } = readReceipts(headers);
  addDecoded(leg, decoded, redactor);
  if (receipt !== undefined) leg.receipt = receipt;
  if (status !== 402) return;
  const offers = readOffersOfHead(headers);
  leg.ways = offers.ways.slice(0, maxWays);
  addDecoded(leg, offers.decoded, redactor);
}

/** Ends a leg: both bodies, the offer of version 1, and the seller's reason for a refusal. */
export function endLeg(
  leg: Leg,
  bodies: {
    request: BodyBuffer;
    answer: BodyBuffer;
    head: RequestHead;
    answered: AnswerHead | undefined;
  },
  redactor: Redactor,
): void {
  const { request, answer, head, answered } = bodies;
  leg.request.body = request.record(headerOf(head.headers, "content-encoding"), redactor);
  if (leg.answer === undefined || answered === undefined) return;
  const coding = headerOf(answered.headers, "content-encoding");
  leg.answer.body = answer.record(coding, redactor);
  if (leg.answer.status < 400) return;
  const body = parseJson(answer.text(coding) ?? "");
  if (leg.answer.status === 402) {
    const offer = readOfferOfBody(body);
    leg.ways = [...leg.ways, ...offer.ways].slice(0, maxWays);
    addDecoded(leg, offer.decoded, redactor);
  }
  const refusal = leg.payment && readRefusal(body, leg.receipt);
  if (refusal !== undefined) {
    leg.refusal = { reason: redactor.text(refusal.reason) };
    if (refusal.says !== undefined) leg.refusal.says = redactor.text(refusal.says);
  }
}

/** Names the failed check of a leg that was refused. Its signature may be compared later. */
export function judgeLeg(leg: Leg): void {
  const { payment, answer, refusal } = leg;
  if (payment === undefined || answer === undefined || answer.status < 400) return;
  if (payment.failed?.check === "form") return;
  const failed = nameFailure(payment.comparisons, refusal);
  if (failed !== undefined) payment.failed = failed;
}

function addDecoded(leg: Leg, decoded: readonly DecodedHeader[], redactor: Redactor): void {
  const room = maxDecoded - leg.decoded.length;
  leg.decoded.push(...decoded.slice(0, room).map((each) => clean(each, redactor)));
}

function clean(decoded: DecodedHeader, redactor: Redactor): DecodedHeader {
  return decoded.value === undefined
    ? decoded
    : { ...decoded, value: redactor.json(decoded.value) };
}
