import type { PaymentPayload } from "@coinslot/protocol";
import type { PaymentTerms } from "../routes/read-payment-option.ts";
import { matchRequirements, type Purchase } from "./match-requirements.ts";
import type { Offer } from "./offer.ts";

/**
 * Finds the terms of an earlier payment when a function of the seller's now returns others. Terms
 * that the function decides are taken from the payment; fixed terms must match. Only the ledger
 * knows whether these terms were ever offered. It knows the payment for this request, or the
 * payment is refused.
 */
export function matchPreviousTerms(
  payload: PaymentPayload,
  options: { offer: Offer; accepts: readonly PaymentTerms[] },
): Promise<Purchase | undefined> {
  const { offer, accepts } = options;
  const { to, value } = payload.payload.authorization;
  const earlier = offer.map((way, index) => {
    const terms = accepts[index];
    // The token is part of the price. Version 1 does not say which one was paid.
    const token = payload.x402Version === 2 ? payload.accepted : way.requirements;
    const { asset, extra } = token;
    const requirements = {
      ...way.requirements,
      ...(typeof terms?.price === "function" ? { amount: value, asset, extra } : {}),
      ...(typeof terms?.payTo === "function" ? { payTo: to } : {}),
    };
    return { ...way, requirements };
  });
  return matchRequirements(payload, earlier);
}
