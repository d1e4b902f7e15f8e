import {
  decodePaymentV1,
  encodeReceipt,
  headerName,
  isNameOfFirstPackages,
  isSameAddress,
  legacyNetworkName,
  type PaymentPayloadV1,
  type PaymentRequiredV1,
  parseNetwork,
  toPaymentRequirementsV1,
} from "@coinslot/protocol";
import type { Offer, OfferedWay } from "../offer/offer.ts";
import { readPurchase } from "../offer/purchase.ts";
import { countHeader, removeHeader } from "./payment-header.ts";
import type { PaymentDemand, Wire } from "./wire.ts";
import { refuseInX402 } from "./x402-refusal.ts";

/** Headers of answers that a page on another origin may read. */
export const exposedByX402V1 = [headerName.paymentResponseV1];

const requestHeader = headerName.payment.toLowerCase();

/**
 * x402 version 1: the offer is the body of the 402 answer, payment and receipt travel in headers. A
 * payment names its network alone.
 *
 * @param options.legacyNetworkNames Write the names from before CAIP-2, for networks that have one.
 */
export function createX402V1(options: { legacyNetworkNames: boolean }): Wire<PaymentPayloadV1> {
  return {
    name: "x402v1",
    writeOffer: (demand) => ({ body: writeBody(demand, options) }),
    countPayments: (request) => countHeader(request, requestHeader),
    read: (request) => decodePaymentV1(String(request.headers[requestHeader])),
    withhold: (request) => removeHeader(request, requestHeader),

    match(payload, offer) {
      const network = parseNetwork(payload.network);
      const { to, value } = payload.payload.authorization;
      return offer.flatMap(({ requirements, versions }) =>
        versions.has(1) &&
        requirements.scheme === payload.scheme &&
        requirements.network === network &&
        isSameAddress(requirements.payTo, to) &&
        BigInt(value) >= BigInt(requirements.amount)
          ? readPurchase(payload, requirements)
          : [],
      );
    },

    statedTerms({ payload }) {
      const { to, value } = payload.authorization;
      return { payTo: to, price: { amount: value } };
    },

    writeReceipt(response, settlement) {
      response.setHeader(headerName.paymentResponseV1, encodeReceipt(settlement, 1));
    },
    refuse: refuseInX402,
  };
}

interface NamedWay extends OfferedWay {
  /** The network's name in this version. */
  networkName: string;
}

function writeBody(
  { offer, resource, error }: PaymentDemand,
  { legacyNetworkNames }: { legacyNetworkNames: boolean },
): PaymentRequiredV1 {
  const ways = offer.filter(({ versions }) => versions.has(1));
  const named = legacyNetworkNames ? withReadableNames(ways) : ways.map(withOwnName);
  return {
    x402Version: 1,
    error,
    accepts: named.map(({ requirements, networkName }) =>
      toPaymentRequirementsV1({ requirements, resource, networkName }),
    ),
  };
}

function withOwnName(way: OfferedWay): NamedWay {
  return { ...way, networkName: way.requirements.network };
}

/**
 * The part of an offer that clients can read where networks are written by their old names. It
 * holds the networks that the first clients know, else all with an old name, else all. Those
 * clients cannot read an offer that names any other network.
 */
function withReadableNames(offer: Offer): NamedWay[] {
  const named = offer.flatMap((way): NamedWay[] => {
    const networkName = legacyNetworkName(way.requirements.network);
    return networkName === undefined ? [] : [{ ...way, networkName }];
  });
  const known = named.filter(({ networkName }) => isNameOfFirstPackages(networkName));
  return [known, named].find(({ length }) => length > 0) ?? offer.map(withOwnName);
}
