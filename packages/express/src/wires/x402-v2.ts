import { isDeepStrictEqual } from "node:util";
import {
  decodePaymentV2,
  encodePaymentRequired,
  encodeReceipt,
  headerName,
  isSameAddress,
  type PaymentPayloadV2,
  paymentIdentifierExtension,
} from "@coinslot/protocol";
import { readPurchase } from "../offer/purchase.ts";
import { countHeader, removeHeader } from "./payment-header.ts";
import type { OfferPart, PaymentDemand, Wire } from "./wire.ts";
import { refuseInX402 } from "./x402-refusal.ts";

/** Headers of answers that a page on another origin may read. */
export const exposedByX402V2 = [headerName.paymentRequired, headerName.paymentResponse];

const requestHeader = headerName.paymentSignature.toLowerCase();

/** x402 version 2: offer, payment and receipt travel in headers. A payment repeats its terms. */
export const x402V2: Wire<PaymentPayloadV2> = {
  name: "x402v2",
  writeOffer,
  countPayments: (request) => countHeader(request, requestHeader),
  read: (request) => decodePaymentV2(String(request.headers[requestHeader])),
  withhold: (request) => removeHeader(request, requestHeader),

  match(payload, offer) {
    const { accepted } = payload;
    const found = offer.find(
      ({ requirements, versions }) =>
        versions.has(2) &&
        requirements.scheme === accepted.scheme &&
        requirements.network === accepted.network &&
        requirements.amount === accepted.amount &&
        isSameAddress(requirements.asset, accepted.asset) &&
        isSameAddress(requirements.payTo, accepted.payTo) &&
        contains(accepted.extra, requirements.extra),
    );
    return found === undefined ? [] : readPurchase(payload, found.requirements);
  },

  statedTerms({ payload, accepted: { asset, extra } }) {
    const { to, value } = payload.authorization;
    return { payTo: to, price: { amount: value, asset, extra } };
  },

  writeReceipt(response, settlement) {
    response.setHeader(headerName.paymentResponse, encodeReceipt(settlement, 2));
  },
  refuse: refuseInX402,
};

function writeOffer({ offer, resource, error }: PaymentDemand): OfferPart {
  const ways = offer.filter(({ versions }) => versions.has(2));
  if (ways.length === 0) return {};
  const accepts = ways.map(({ requirements }) => requirements);
  const extensions = paymentIdentifierExtension;
  const value = encodePaymentRequired({ x402Version: 2, error, resource, accepts, extensions });
  return { writeHead: (response) => void response.setHeader(headerName.paymentRequired, value) };
}

function contains(
  extra: Record<string, unknown> | undefined,
  ours: Record<string, unknown> | undefined,
): boolean {
  return Object.entries(ours ?? {}).every(([name, value]) =>
    isDeepStrictEqual(extra?.[name], value),
  );
}
