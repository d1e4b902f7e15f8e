import {
  encodePaymentRequired,
  isNameOfFirstPackages,
  type PaymentRequiredV1,
  paymentIdentifierExtension,
  type ResourceInfo,
  toPaymentRequirementsV1,
} from "@coinslot/protocol";
import type { Offer } from "../offer/offer.ts";

/** Content of a 402 answer: version 1 in the body, version 2 in the header. */
export interface PaymentRequiredAnswer {
  /** `undefined` when version 2 is not offered. */
  header: string | undefined;
  body: Buffer;
}

const keptAnswers = 64;

/** Error text for a request without a payment. */
export const unpaidError = "Payment required";

/**
 * Writes the 402 answer for an offer.
 *
 * Where nothing in the offer depends on the request, the answer to unpaid requests depends on the
 * URL alone. The last few are cached: they are most of an unpaid route's answers.
 */
export function createPaymentRequiredAnswers(): (options: {
  offer: Offer;
  resource: ResourceInfo;
  error: string;
  charged?: boolean;
}) => PaymentRequiredAnswer {
  const kept = new WeakMap<Offer, Map<string, PaymentRequiredAnswer>>();
  return (options) => {
    const { offer, resource, error } = options;
    if (error !== unpaidError) return write(options);
    const byUrl = kept.get(offer) ?? new Map<string, PaymentRequiredAnswer>();
    const known = byUrl.get(resource.url);
    if (known !== undefined) return known;
    const answer = write(options);
    if (byUrl.size >= keptAnswers) byUrl.clear();
    byUrl.set(resource.url, answer);
    kept.set(offer, byUrl);
    return answer;
  };
}

function write(options: {
  offer: Offer;
  resource: ResourceInfo;
  error: string;
  charged?: boolean;
}): PaymentRequiredAnswer {
  const { offer, resource, error, charged } = options;
  const v1 = withReadableNames(offer.filter(({ versions }) => versions.v1));
  const v2 = offer.filter(({ versions }) => versions.v2);
  const message: PaymentRequiredV1 = {
    x402Version: 1,
    error,
    accepts: v1.map(({ requirements, networkName }) =>
      toPaymentRequirementsV1({ requirements, resource, networkName }),
    ),
  };
  const extensions = paymentIdentifierExtension;
  const accepts = v2.map(({ requirements }) => requirements);
  return {
    header:
      accepts.length === 0
        ? undefined
        : encodePaymentRequired({ x402Version: 2, error, resource, accepts, extensions }),
    body: Buffer.from(JSON.stringify({ ...message, charged })),
  };
}

/**
 * The part of an offer that clients can read where networks are written by their old names. It
 * holds the networks that the first clients know, else all with an old name, else all. Those
 * clients cannot read an offer that names any other network.
 */
function withReadableNames(offer: Offer): Offer {
  const named = offer.filter(({ networkName, requirements }) => {
    return networkName !== requirements.network;
  });
  const known = named.filter(({ networkName }) => isNameOfFirstPackages(networkName));
  return [known, named].find(({ length }) => length > 0) ?? offer;
}
