import {
  encodePaymentPayload,
  headerName,
  type Offer,
  type OfferedRequirements,
  type PaymentPayload,
  type PaymentRequirements,
} from "@coinslot/protocol";
import type { SignedPayment } from "../../sign/signed-payment.ts";
import type { ChannelMessage } from "../wire.ts";

interface SignedOffer {
  payload: PaymentPayload["payload"];
  offered: OfferedRequirements;
  offer: Offer;
  idempotencyKey: string;
}

/** Writes a payment for the version of its offer. */
export function writePayment(signed: SignedOffer): SignedPayment["header"] {
  const message = wrap(signed);
  const name = message.x402Version === 1 ? headerName.payment : headerName.paymentSignature;
  return { name, value: encodePaymentPayload(message) };
}

/** Writes a payload of a payment channel. Channels are of version 2. */
export function writeChannelPayment(signed: {
  payload: ChannelMessage;
  /** The entry of the offer, as received. */
  accepted: PaymentRequirements;
  offer: Offer;
  idempotencyKey: string;
}): SignedPayment["header"] {
  const { payload, accepted, offer, idempotencyKey } = signed;
  const extensions = offer.extensions && identify(offer.extensions, idempotencyKey);
  const message = {
    x402Version: 2,
    payload,
    accepted,
    ...(offer.resource ? { resource: offer.resource } : {}),
    ...(extensions ? { extensions } : {}),
  };
  const value = Buffer.from(JSON.stringify(message), "utf8").toString("base64");
  return { name: headerName.paymentSignature, value };
}

function wrap({ payload, offered, offer, idempotencyKey }: SignedOffer): PaymentPayload {
  if (offered.x402Version === 1) {
    return { x402Version: 1, scheme: "exact", network: offered.networkName, payload };
  }
  const extensions = offer.extensions && identify(offer.extensions, idempotencyKey);
  return {
    x402Version: 2,
    payload,
    accepted: offered.accepted,
    ...(offer.resource ? { resource: offer.resource } : {}),
    ...(extensions ? { extensions } : {}),
  };
}

// A seller that knows the `payment-identifier` extension gets the key there too, since it may read
// no other place. All other extensions are repeated untouched.
function identify(extensions: Record<string, unknown>, id: string): Record<string, unknown> {
  const extension = extensions["payment-identifier"];
  if (!isRecord(extension) || !/^[A-Za-z0-9_-]{16,128}$/.test(id)) return extensions;
  const info = isRecord(extension.info) ? extension.info : {};
  return { ...extensions, "payment-identifier": { ...extension, info: { ...info, id } } };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
