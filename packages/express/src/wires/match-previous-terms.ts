import type { Offer } from "../offer/offer.ts";
import type { Purchase } from "../offer/purchase.ts";
import type { PaymentTerms } from "../routes/read-payment-option.ts";
import { matchPayment } from "./match-payment.ts";
import type { Presented } from "./wire.ts";

/**
 * Finds the terms of an earlier payment when a function of the seller's now returns others. Terms
 * that the function decides are taken from the payment; fixed terms must match. Only the ledger
 * knows whether these terms were ever offered. It knows the payment for this request, or the
 * payment is refused.
 */
export function matchPreviousTerms(
  presented: Presented,
  options: { offer: Offer; accepts: readonly PaymentTerms[] },
): Promise<Purchase | undefined> {
  const { offer, accepts } = options;
  const { payTo, price } = presented.wire.statedTerms(presented.credential);
  const earlier = offer.map((way, index) => {
    const terms = accepts[index];
    const requirements = {
      ...way.requirements,
      // The token is part of the price.
      ...(typeof terms?.price === "function" ? price : {}),
      ...(typeof terms?.payTo === "function" ? { payTo } : {}),
    };
    return { ...way, requirements };
  });
  return matchPayment(presented, earlier);
}
