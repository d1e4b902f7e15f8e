import { answerInvalid, answerUnpaid, refuseVisit } from "../answer.ts";
import { isRedemption } from "../browser/redemption.ts";
import { noMatch } from "../count-visit.ts";
import { askFacilitator } from "../facilitator/ask-facilitator.ts";
import { resourceOf } from "../offer/resource.ts";
import { askSeller } from "../offer/seller-function-error.ts";
import * as refusals from "../refusals.ts";
import { limitKeyOf } from "../reservations/limit-key.ts";
import type { ChannelOrder, ChannelVisit } from "./channel-sale.ts";
import { serveByType } from "./serve-by-type.ts";

/** From a payment by a channel to its checks, and to the service for which it asks. */
export async function serveChannel(visit: ChannelVisit): Promise<void> {
  const { payment, offer, presented, request, facilitator } = visit;
  // A cookie opens the kept answer of a transfer, and buys nothing.
  if (isRedemption(request)) return answerUnpaid(visit, offer);
  const { channels } = facilitator;
  const way = visit.wire.match(payment, offer);
  if (way?.channelTerms === undefined || channels === undefined) {
    return answerInvalid(visit, { offer, presented, reason: noMatch });
  }
  const order = await orderOf(visit, {
    channels,
    requirements: way.requirements,
    terms: way.channelTerms,
  });
  if (await turnAway(order)) return;
  const { network } = order.requirements;
  const fault = await askFacilitator(order, async () => ({
    reason: channels.check(order.voucher, { network, terms: order.terms }),
  }));
  if (fault === undefined) return;
  if (fault.reason !== undefined) return answerInvalid(order, { reason: fault.reason, ...order });
  return serveByType(order, payment.payload);
}

async function orderOf(
  visit: ChannelVisit,
  matched: Pick<ChannelOrder, "channels" | "requirements" | "terms">,
): Promise<ChannelOrder> {
  const { payload } = visit.payment;
  const { channelConfig, voucher } = payload;
  const { clientKey } = visit.settings;
  return {
    voucher: { channelConfig, voucher },
    signer: channelConfig.payerAuthorizer,
    price: BigInt(matched.requirements.amount),
    resource: resourceOf(visit),
    limitKey: await askSeller("clientKey", visit.route.key, () =>
      limitKeyOf(visit.request, clientKey),
    ),
    ...matched,
    ...visit,
  };
}

/** Asks the seller whether it refuses the signer. */
async function turnAway(order: ChannelOrder): Promise<boolean> {
  const { settings, route, request, requirements, signer } = order;
  const { refusePayer } = settings;
  if (refusePayer === undefined) return false;
  const turnedAway = await askSeller("refusePayer", route.key, () =>
    refusePayer({ request, payer: signer, requirements }),
  );
  if (turnedAway === undefined) return false;
  refuseVisit(order, refusals.refusedPayer(turnedAway));
  return true;
}
