import { answerInvalid, refuseVisit } from "../answer.ts";
import { askFacilitator } from "../facilitator/ask-facilitator.ts";
import { leavePlace, takePlace } from "../load/load.ts";
import { refuseLoad } from "../load/overload-report.ts";
import { hasFixedTerms } from "../offer/offer.ts";
import * as refusals from "../refusals.ts";
import { createAnswerSeal } from "../replay/answer-seal.ts";
import { fingerprintOf } from "../replay/fingerprint.ts";
import { idempotencyKeyOf } from "../replay/idempotency-key.ts";
import { placeOf } from "../replay/place.ts";
import { readPaidBody } from "../reservations/read-paid-body.ts";
import { isSafeMethod } from "../response/run-held.ts";
import { isGone } from "../response/when-gone.ts";
import { noteSold } from "../sold-requests.ts";
import { answerCorrection } from "./answer-correction.ts";
import { channelBusy } from "./channel-refusals.ts";
import { answerNameOf, type ChannelOrder, type ChannelSale } from "./channel-sale.ts";
import { repeatSale, sellOnAnswer, sellUpfront } from "./sell-by-channel.ts";

/**
 * From a checked voucher to its admission, and to the sale.
 *
 * @param fund brings money into the channel before; `undefined`: the request has been answered
 */
export async function sellByVoucher(
  order: ChannelOrder,
  fund: (sale: ChannelSale) => Promise<ChannelSale | undefined> = async (sale) => sale,
): Promise<void> {
  const read = await readPaidBody(order);
  if (read.state === "answered") return;
  // Not looked up: an earlier request with the voucher may have been charged.
  if (read.state === "overloaded") return refuseOverload(order, refusals.overloaded);
  try {
    const sale = await fund(saleOf(order, read.body));
    if (sale !== undefined) await admit(order, sale, read.close);
  } finally {
    read.close();
  }
}

function saleOf(
  order: ChannelOrder,
  body: Parameters<typeof fingerprintOf>[0]["body"],
): ChannelSale {
  const { request, payment, route, presented, voucher, settings } = order;
  const id = answerNameOf(order);
  const key = idempotencyKeyOf(request, payment);
  const seal = key === undefined ? undefined : createAnswerSeal({ key, id });
  const { channelId, maxClaimableAmount } = voucher.voucher;
  // A voucher names no price: its last charge may have been made at another.
  const isFixed = hasFixedTerms(route.accepts.filter(({ channel }) => channel !== undefined));
  const price = isFixed ? { price: `${order.price}` } : {};
  const fingerprint = fingerprintOf({
    request,
    body,
    varyHeaders: route.varyHeaders,
    terms: { channelId, ceiling: `${maxClaimableAmount}`, ...price },
    wire: presented.wire.name,
    place: isFixed ? undefined : placeOf(request, settings.publicUrl),
  });
  const owner = { id, fingerprint, keyHash: seal?.keyHash };
  return { seal, owner, progress: { hasRun: false }, ...order };
}

/** @param closeBody frees its room among bodies whose payment is not proven */
async function admit(order: ChannelOrder, sale: ChannelSale, closeBody: () => void): Promise<void> {
  const { channels, request, response, route, presented, load, place, settings } = order;
  // Requests of one channel wait for each other, and take no place meanwhile.
  leavePlace(load, place);
  const admission = await askFacilitator(order, () =>
    channels.admit({
      network: order.requirements.network,
      route: route.key,
      presented: order.voucher,
      price: order.price,
      fingerprint: sale.owner.fingerprint,
      keyHash: sale.owner.keyHash,
      isSafe: isSafeMethod(request.method),
      isGone: () => isGone(response),
      limitKey: order.limitKey,
    }),
  );
  closeBody();
  switch (admission?.state) {
    case undefined:
    case "gone":
      return;
    case "corrected":
      return answerCorrection(order, admission);
    case "refused":
      return answerInvalid(order, { reason: admission.reason, ...order });
    case "busy":
      return refuseVisit(order, channelBusy(admission.retryAfterSeconds));
    case "payer_limited":
      return refuseVisit(order, refusals.payerLimited(admission.retryAfterSeconds));
    case "repeated": {
      const { repeat } = admission;
      if (!takePlace(load, place, settings)) {
        await repeat.giveUp();
        return refuseOverload(order, refusals.overloaded);
      }
      noteSold(request, route);
      presented.wire.withhold(request);
      return repeatSale(sale, repeat);
    }
    case "admitted": {
      const { run } = admission;
      if (!takePlace(load, place, settings)) {
        await run.drop({ isFree: false });
        return refuseOverload(order);
      }
      noteSold(request, route);
      presented.wire.withhold(request);
      const sell = route.paymentFlow === "upfront" ? sellUpfront : sellOnAnswer;
      return sell(sale, run);
    }
  }
}

function refuseOverload(
  visit: ChannelOrder,
  refusal: refusals.Refusal = refusals.overloadedUncharged,
): void {
  const { load, settings } = visit;
  refuseLoad(load, settings, settings.onError);
  refuseVisit(visit, refusal);
}
