import { isDeepStrictEqual } from "node:util";
import {
  type ChannelPayment,
  decodePaymentOfAnyScheme,
  encodeChannelReceipt,
  encodePaymentRequired,
  encodeReceipt,
  headerName,
  isChannelPayment,
  isSameAddress,
  type PaymentPayloadV2,
  paymentIdentifierExtension,
} from "@coinslot/protocol";
import type { OfferedWay } from "../offer/offer.ts";
import { readPurchase } from "../offer/purchase.ts";
import { countHeader, removeHeader } from "./payment-header.ts";
import type { OfferPart, PaymentDemand, Wire } from "./wire.ts";
import { refuseInX402 } from "./x402-refusal.ts";

/** Headers of answers that a page on another origin may read. */
export const exposedByX402V2 = [headerName.paymentRequired, headerName.paymentResponse];

const requestHeader = headerName.paymentSignature.toLowerCase();

/** x402 version 2: offer, payment and receipt travel in headers. A payment repeats its terms. */
export const x402V2: Wire<PaymentPayloadV2 | ChannelPayment> = {
  name: "x402v2",
  writeOffer,
  countPayments: (request) => countHeader(request, requestHeader),
  read: (request) => decodePaymentOfAnyScheme(String(request.headers[requestHeader])),
  withhold: (request) => removeHeader(request, requestHeader),

  match(payload, offer) {
    if (isChannelPayment(payload)) return [];
    const found = offer.find((way) => isAccepted(way, payload.accepted));
    return found === undefined ? [] : readPurchase(payload, found.requirements);
  },

  statedTerms({ payload, accepted }) {
    const { payTo, amount, asset, extra } = accepted;
    if ("type" in payload) return { payTo, price: { amount, asset, extra } };
    const { to, value } = payload.authorization;
    return { payTo: to, price: { amount: value, asset, extra } };
  },

  channels: {
    read: (payment) => (isChannelPayment(payment) ? payment : undefined),
    match: ({ accepted }, offer) =>
      offer.find((way) => way.channelTerms !== undefined && isAccepted(way, accepted)),
    writeReceipt(response, settlement, extra) {
      response.setHeader(headerName.paymentResponse, encodeChannelReceipt(settlement, extra));
    },
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

function isAccepted(
  { requirements, versions }: OfferedWay,
  accepted: PaymentPayloadV2["accepted"],
): boolean {
  return (
    versions.has(2) &&
    requirements.scheme === accepted.scheme &&
    requirements.network === accepted.network &&
    requirements.amount === accepted.amount &&
    isSameAddress(requirements.asset, accepted.asset) &&
    isSameAddress(requirements.payTo, accepted.payTo) &&
    contains(accepted.extra, requirements.extra)
  );
}

function contains(
  extra: Record<string, unknown> | undefined,
  ours: Record<string, unknown> | undefined,
): boolean {
  return Object.entries(ours ?? {}).every(([name, value]) =>
    isDeepStrictEqual(extra?.[name], value),
  );
}
