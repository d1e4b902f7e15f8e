import {
  type Address,
  type Authorization,
  encodePaymentPayload,
  formatAuthorization,
  type Hex,
  headerName,
  maxHeaderLength,
  type Offer,
  type PaymentPayload,
  toLowerHex,
  transferTypedData,
} from "@coinslot/protocol";
import { bytesToHex } from "viem";
import type { Candidate } from "../offer/choose-requirements.ts";
import { PaymentError } from "../payment-error.ts";
import { hashBody, type RepeatableRequest } from "../send/repeatable-request.ts";
import type { PayingAccount } from "./payer.ts";
import type { PaymentTerms, SignedPayment } from "./signed-payment.ts";

/**
 * Drafts the terms to authorize: the exact price, from now on, for as long as settling may take.
 */
export function draftTerms(options: {
  candidate: Candidate;
  payer: Address;
  /** Unix milliseconds. */
  now: number;
  maxValiditySeconds: number;
  randomBytes: (size: number) => Uint8Array;
}): PaymentTerms {
  const { candidate, payer, now, maxValiditySeconds, randomBytes } = options;
  const { payTo, amount, maxTimeoutSeconds } = candidate.offered.requirements;
  return {
    network: candidate.asset.network,
    asset: toLowerHex(candidate.asset.address),
    payer: toLowerHex(payer),
    payTo: toLowerHex(payTo),
    amount,
    nonce: bytesToHex(randomBytes(32)),
    validBefore: Math.floor(now / 1000) + Math.min(maxTimeoutSeconds, maxValiditySeconds),
  };
}

/**
 * Signs the EIP-3009 authorization and wraps it for the version of the offer.
 *
 * @throws PaymentError `signing_failed` or `payment_too_large`; no payment has left this function
 * then.
 */
export async function signPayment(options: {
  terms: PaymentTerms;
  candidate: Candidate;
  offer: Offer;
  account: PayingAccount;
  request: RepeatableRequest;
  url: URL;
  idempotencyKey: string;
}): Promise<SignedPayment> {
  const { terms, candidate, offer, account, request, url, idempotencyKey } = options;
  const authorization: Authorization = {
    from: terms.payer,
    to: terms.payTo,
    value: BigInt(terms.amount),
    validAfter: 0n,
    validBefore: BigInt(terms.validBefore),
    nonce: terms.nonce,
  };
  const { name, version } = candidate.asset;
  const domain = { name, version };
  const { network, asset } = terms;
  let signature: Hex;
  try {
    signature = await account.signTypedData(
      transferTypedData({ authorization, network, asset, domain }),
    );
  } catch (cause) {
    throw new PaymentError("signing_failed", "The account did not sign the payment", { cause });
  }

  const payload = { signature, authorization: formatAuthorization(authorization) };
  const message = wrap({ payload, candidate, offer, idempotencyKey });
  const value = encodePaymentPayload(message);
  if (value.length > maxHeaderLength) {
    throw new PaymentError(
      "payment_too_large",
      `The members to repeat make the payment longer than ${maxHeaderLength} characters`,
    );
  }
  return {
    request: { method: request.method, url: request.url.href, bodyHash: hashBody(request) },
    sendTo: url.href,
    header: {
      name: message.x402Version === 1 ? headerName.payment : headerName.paymentSignature,
      value,
    },
    idempotencyKey,
    terms,
  };
}

function wrap(options: {
  payload: PaymentPayload["payload"];
  candidate: Candidate;
  offer: Offer;
  idempotencyKey: string;
}): PaymentPayload {
  const { payload, offer, idempotencyKey } = options;
  const { offered } = options.candidate;
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
