import type { SettleResponse } from "@coinslot/protocol";
import { answerUnsettled, refuseVisit } from "../answer.ts";
import {
  asksToRedeem,
  clearRedemption,
  isRedemption,
  sealRedemption,
  setRedemption,
} from "../browser/redemption.ts";
import { leavePlace } from "../load/load.ts";
import { internalError } from "../refusals.ts";
import { keepAnswer } from "../replay/kept-answer.ts";
import { deliverSale, releaseSale } from "../reservations/end-reservation.ts";
import type { MatchedPayment, PaidSale, Sale } from "../sale.ts";
import { type HeldAnswer, sendAnswer } from "./held-answer.ts";
import type { HeldResponse } from "./hold-response.ts";
import { exposePaymentHeaders, makePrivate } from "./response-headers.ts";
import { decorateHead, whenStreamed, whenWritten } from "./stream-response.ts";

/** Sends the handler's answer with its receipt. The payment is used up once the answer is out. */
export async function handOver(
  sale: PaidSale,
  held: HeldResponse,
  answer: HeldAnswer,
): Promise<void> {
  const { request, response, settings, settlement, load, place } = sale;
  if (!(await isStillHeld(sale))) {
    await withhold(sale, answer);
    return held.replace(() => answerUnsettled(sale, pending(settlement)));
  }
  const cookie = asksToRedeem(request) ? await sealRedemption(sale, answer) : undefined;
  leavePlace(load, place);
  const sent = whenStreamed(response);
  try {
    held.release(answer, () => {
      decorate(sale, settlement);
      setRedemption(response, cookie);
    });
  } catch (error) {
    // Not answered as an error of ours: it has been paid for, and the same payment may try again.
    settings.onError(error);
    response.destroy();
  }
  if ((await sent) !== "disconnected") return deliverSale(sale);
  keepAnswer(sale, answer);
  await releaseSale(sale, "disconnected");
}

/** Lets the handler of a settled sale answer freely, with the receipt in its headers. */
export async function handOverStream(sale: PaidSale): Promise<void> {
  const { request, response, next, payment, settlement, settings, progress, load, place } = sale;
  request.payment = {
    scheme: "exact",
    paymentFlow: "upfront",
    payer: payment.id.payer,
    amount: payment.authorization.value.toString(),
    asset: payment.asset,
    network: payment.network,
    settlement,
  };
  progress.hasRun = true;
  leavePlace(load, place);
  const sent = whenWritten(response);
  decorateHead(response, () => decorate(sale, settlement));
  try {
    next();
  } catch (error) {
    settings.onError(error);
    if (response.headersSent) response.destroy();
    else refuseVisit(sale, internalError);
  }
  const outcome = await sent;
  if (outcome === "answered") await deliverSale(sale);
  else await releaseSale(sale, outcome === "failed" ? "handler_failed" : "disconnected");
}

/** Sends a kept answer to the buyer that owns it. */
export async function handOverKept(
  order: MatchedPayment | PaidSale,
  kept: HeldAnswer,
  settlement: SettleResponse,
): Promise<void> {
  const { request, response, load, place } = order;
  if ("reservation" in order && !(await isStillHeld(order))) {
    await withhold(order, kept);
    return answerUnsettled(order, pending(settlement));
  }
  const cookie = asksToRedeem(request) ? await sealRedemption(order, kept) : undefined;
  leavePlace(load, place);
  const sent = whenStreamed(response);
  for (const [name, value] of kept.headers) response.setHeader(name, value);
  decorate(order, settlement);
  if (isRedemption(request)) clearRedemption(order);
  else setRedemption(response, cookie);
  sendAnswer(response, kept);
  const outcome = await sent;
  if (!("reservation" in order)) return;
  if (outcome === "disconnected") await releaseSale(order, "disconnected");
  else await deliverSale(order);
}

/**
 * After a freeze, another process may deliver the answer. A payload without a key is public once it
 * is broadcast. With a key too, the payment may be given back by now. Fails closed.
 */
async function isStillHeld({ facilitator, reservation, settings }: Sale): Promise<boolean> {
  try {
    return (await facilitator.isHeld?.(reservation)) ?? true;
  } catch (error) {
    settings.onError(error);
    return false;
  }
}

/**
 * Gives the reservation up, with the answer for the next request. Without effect where another
 * process has the payment. After a fault nothing else would end it, and each retry would be in use.
 */
function withhold(sale: Sale, answer: HeldAnswer): Promise<void> {
  keepAnswer(sale, answer);
  return releaseSale(sale, "outcome_unknown");
}

/** Says to try again, which finds out what became of the payment. */
function pending(settlement: SettleResponse): SettleResponse {
  return { ...settlement, success: false, errorReason: "settlement_pending" };
}

function decorate({ response, presented }: MatchedPayment, settlement: SettleResponse): void {
  presented.wire.writeReceipt(response, settlement, presented.credential);
  makePrivate(response);
  exposePaymentHeaders(response);
}
