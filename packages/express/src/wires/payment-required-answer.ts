import type { Offer } from "../offer/offer.ts";
import { asSent, type SentBody } from "../response/held-answer.ts";
import type { OfferPart, PaymentDemand, Wire } from "./wire.ts";

/** A 402 answer, of which every wire has written its part. */
export interface PaymentRequiredAnswer {
  parts: readonly OfferPart[];
  /** JSON, with the members of all parts. */
  body: SentBody;
}

const keptAnswers = 64;

/** Error text for a request without a payment. */
export const unpaidError = "Payment required";

/** Writes the 402 answer for a demand. */
export type WritePaymentRequired = (demand: PaymentDemand) => PaymentRequiredAnswer;

/**
 * Writes the 402 answer for an offer.
 *
 * Where nothing in the offer depends on the request, the answer to unpaid requests depends on the
 * URL alone. The last few are cached: they are most of an unpaid route's answers.
 */
export function createPaymentRequiredAnswers(wires: readonly Wire[]): WritePaymentRequired {
  const kept = new WeakMap<Offer, Map<string, PaymentRequiredAnswer>>();
  return (demand) => {
    const { offer, resource, error } = demand;
    if (error !== unpaidError) return write(wires, demand);
    const byUrl = kept.get(offer) ?? new Map<string, PaymentRequiredAnswer>();
    const known = byUrl.get(resource.url);
    if (known !== undefined) return known;
    const answer = write(wires, demand);
    if (byUrl.size >= keptAnswers) byUrl.clear();
    byUrl.set(resource.url, answer);
    kept.set(offer, byUrl);
    return answer;
  };
}

function write(wires: readonly Wire[], demand: PaymentDemand): PaymentRequiredAnswer {
  const parts = wires.map((wire) => wire.writeOffer(demand));
  const members: object = Object.assign({}, ...parts.map(({ body }) => body));
  const { charged, transaction } = demand;
  const body = Buffer.from(JSON.stringify({ ...members, charged, transaction }));
  return { parts, body: asSent(body) };
}
