import type { InvalidReason } from "@coinslot/protocol";
import {
  answerInvalid,
  answerPaymentRequired,
  answerRefunded,
  answerUnpaid,
  refuseVisit,
} from "./answer.ts";
import { isRedemption, mayRedeem, redeem } from "./browser/redemption.ts";
import { serveChannel } from "./channels/serve-channel.ts";
import { noMatch } from "./count-visit.ts";
import { askFacilitator } from "./facilitator/ask-facilitator.ts";
import { createPlace, endLoad, takePlace } from "./load/load.ts";
import { refuseLoad } from "./load/overload-report.ts";
import { resourceOf } from "./offer/resource.ts";
import { askSeller } from "./offer/seller-function-error.ts";
import * as refusals from "./refusals.ts";
import { openKeptAnswer } from "./replay/kept-answer.ts";
import { admitPayment, verifyOptions } from "./reservations/admit-payment.ts";
import { releaseSale } from "./reservations/end-reservation.ts";
import { limitKeyOf } from "./reservations/limit-key.ts";
import { handOverKept } from "./response/hand-over.ts";
import { isGone } from "./response/when-gone.ts";
import type { MatchedPayment, Sale, Visit } from "./sale.ts";
import { resumeSale, sellOnAnswer, sellUpfront } from "./sell.ts";
import { noteSold } from "./sold-requests.ts";
import { matchPayment } from "./wires/match-payment.ts";
import { matchPreviousTerms } from "./wires/match-previous-terms.ts";
import { readPayment } from "./wires/read-payment.ts";

/** From a request to a paid route to its payment. */
export async function serveVisit(visit: Visit): Promise<void> {
  const { settings, route, request, next, load } = visit;
  const { grantAccess } = settings;
  if (
    grantAccess &&
    (await askSeller("grantAccess", route.key, () => grantAccess(request))) === true
  ) {
    return next();
  }

  const making = visit.makeOffer(request);
  const offer = making instanceof Promise ? await making : making;
  const { wires } = visit;
  const brought = readPayment(request, { wires, offer });
  const isRedeemed = brought.state === "absent" && mayRedeem(request) && (await redeem(visit));
  const presented = isRedeemed ? readPayment(request, { wires, offer }) : brought;
  if (presented.state === "absent") return answerUnpaid(visit, offer);
  if (presented.state === "malformed") {
    const { refusal, error } = presented;
    if (refusal) return refuseVisit(visit, refusal);
    return answerPaymentRequired(visit, { offer, error });
  }
  const place = createPlace();
  if (!takePlace(load, place, settings)) return refuseOverload(visit);
  try {
    const { channels: wire } = presented.wire;
    const payment = wire?.read(presented.credential);
    if (wire !== undefined && payment !== undefined) {
      return await serveChannel({ offer, presented, place, payment, wire, ...visit });
    }
    await serveBuyer({ offer, presented, place, ...visit });
  } finally {
    endLoad(load, place);
  }
}

/** A request with a payment, in a place. */
type BuyerVisit = Visit & Pick<MatchedPayment, "offer" | "presented" | "place">;

/** From a payment to its admission, and to the sale. */
async function serveBuyer(visit: BuyerVisit): Promise<void> {
  const { settings, facilitator, route, request, response, offer, presented } = visit;
  const { refusePayer, clientKey } = settings;
  // A cookie opens a kept answer, and buys nothing: without one, its page has what follows.
  const isRedeeming = isRedemption(request);
  let known: BuyerVisit | MatchedPayment = visit;
  const refuse = (reason: string) =>
    isRedeeming ? answerUnpaid(visit, offer) : answerInvalid(known, { offer, presented, reason });
  const asked = await matchPayment(presented, offer);
  const { accepts } = route;
  const purchase = asked ?? (await matchPreviousTerms(presented, { offer, accepts }));
  if (purchase === undefined) return refuse(noMatch);
  const { payload, requirements, payment } = purchase;
  const resource = resourceOf(visit);
  const limitKey = await askSeller("clientKey", route.key, () => limitKeyOf(request, clientKey));
  const order: MatchedPayment = {
    payload,
    requirements,
    payment,
    resource,
    limitKey,
    ...visit,
  };
  known = order;
  const { payer } = payment.id;
  const turnedAway =
    refusePayer &&
    (await askSeller("refusePayer", route.key, () =>
      refusePayer({ request, payer, requirements }),
    ));
  if (turnedAway !== undefined) {
    return refuseVisit(order, refusals.refusedPayer(turnedAway));
  }
  const checked = await askFacilitator(order, () =>
    facilitator.verifyLocally(payload, requirements, verifyOptions(order)),
  );
  if (checked === undefined) return;
  const { invalidReason = "invalid_payload" } = checked;
  const isTooLate = !checked.isValid && invalidReason === tooLate;
  if (!checked.isValid && !isTooLate) return refuse(asked ? invalidReason : noMatch);
  // A payment under way, or settled, is delivered at any time and for the terms of its time.
  const isFit = asked !== undefined && !isRedeeming;
  const refusalIfNew = !isFit ? noMatch : isTooLate ? tooLate : undefined;

  const admitted = await admitPayment(order, checked, refusalIfNew);
  if (admitted === undefined) return;
  const { admission, fingerprint } = admitted;
  const isOpen = admission.state === "delivered" || admission.state === "resumed";
  if (isRedeeming && !isOpen) return answerUnpaid(visit, offer);
  switch (admission.state) {
    case "refused":
      return refuse(admission.reason);
    case "overloaded":
      return refuseOverload(visit, admission);
    case "in_use":
      return refuseVisit(order, refusals.inUse);
    case "key_conflict":
      return refuseVisit(order, refusals.keyConflict);
    case "used_up":
      return answerPaymentRequired(order, { offer, error: "payment_used_up", charged: false });
    case "refunded":
      return answerRefunded(order, admission.settlement);
    case "payer_limited":
      return refuseVisit(order, refusals.payerLimited(admission.retryAfterSeconds));
    case "delivered": {
      const kept = openKeptAnswer(admission.answer, admitted.seal);
      if (kept === undefined) {
        const { settlement } = admission;
        const refusal = admitted.seal && presented.wire.refuse({ kind: "delivered", settlement });
        if (refusal) return refuseVisit(order, refusal);
        return refuse("invalid_exact_evm_nonce_already_used");
      }
      const deliver = () => handOverKept(order, kept, admission.settlement);
      if (await visit.replays.send(payment.id, deliver)) return;
      return refuseVisit(order, refusals.inUse);
    }
    case "reserved":
    case "resumed": {
      const progress = { hasRun: false };
      const { reservation } = admission;
      // Anyone resumes a payment without a key: an answer kept under theirs is lost to the buyer.
      const isOwnKey = admission.state === "reserved" || admission.isKeyed;
      const seal = isOwnKey ? admitted.seal : undefined;
      const sale: Sale = { reservation, seal, fingerprint, progress, ...order };
      if (isGone(response)) return releaseSale(sale, "unused");
      noteSold(request, route);
      try {
        presented.wire.withhold(request);
        if (admission.state === "resumed") return await resumeSale(sale, admission);
        return await (route.paymentFlow === "upfront" ? sellUpfront(sale) : sellOnAnswer(sale));
      } catch (error) {
        // Nothing else would end the reservation: it would hold the payment for ever.
        await releaseSale(sale, progress.hasRun ? "handler_failed" : "unused");
        throw error;
      }
    }
  }
}

function refuseOverload(visit: Visit, { isNew }: { isNew: boolean } = { isNew: false }): void {
  const { load, settings } = visit;
  refuseLoad(load, settings, settings.onError);
  refuseVisit(visit, isNew ? refusals.overloadedUncharged : refusals.overloaded);
}

const tooLate: InvalidReason = "invalid_exact_evm_payload_authorization_valid_before";
