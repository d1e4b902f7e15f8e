import { caip2Of, type VisitReason, visitReasonOf } from "@coinslot/protocol";
import { countIn } from "./process-visits.ts";
import type { MatchedPayment, Visit } from "./sale.ts";
import { unpaidError } from "./wires/payment-required-answer.ts";

/** Error of a 402 answer to a payment for something else than is offered. */
export const noMatch = "No matching payment requirements";

/**
 * Counts a visit that buys nothing: by the facilitator, or in this process. Once for each answer.
 *
 * @param error code of a refusal, or the error of a 402 answer
 */
export function countVisit(visit: Visit | MatchedPayment, error: string): void {
  const { facilitator, route } = visit;
  countIn(facilitator, { route: route.key, reason: reasonOf(error), ...soldFor(visit) });
}

function reasonOf(error: string): VisitReason {
  if (error === unpaidError) return "offered";
  return error === noMatch ? "no_matching_requirements" : visitReasonOf(error);
}

/** Network and token of a payment, as they are offered: others are a buyer's to invent. */
function soldFor(visit: Visit | MatchedPayment): { network?: string; asset?: string } {
  if (!("requirements" in visit)) return {};
  const { network, asset } = visit.requirements;
  const isOffered = visit.offer.some(
    ({ requirements }) => requirements.network === network && requirements.asset === asset,
  );
  return isOffered ? { network: caip2Of(network), asset: asset.toLowerCase() } : {};
}
