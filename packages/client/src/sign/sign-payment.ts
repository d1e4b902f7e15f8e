import {
  type Address,
  type Authorization,
  formatAuthorization,
  type Hex,
  maxHeaderLength,
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
  const { way } = candidate;
  const seconds = Math.floor(now / 1000);
  return {
    network: candidate.asset.network,
    asset: toLowerHex(candidate.asset.address),
    payer: toLowerHex(payer),
    payTo: toLowerHex(way.payTo),
    amount: way.amount,
    nonce: way.nonce ?? bytesToHex(randomBytes(32)),
    validBefore: Math.min(way.endAt(seconds), seconds + maxValiditySeconds),
  };
}

/**
 * Signs the EIP-3009 authorization and writes it in the protocol of the offer.
 *
 * @throws PaymentError `signing_failed` or `payment_too_large`; no payment has left this function
 * then.
 */
export async function signPayment(options: {
  terms: PaymentTerms;
  candidate: Candidate;
  account: PayingAccount;
  request: RepeatableRequest;
  url: URL;
  idempotencyKey: string;
}): Promise<SignedPayment> {
  const { terms, candidate, account, request, url, idempotencyKey } = options;
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
  const header = candidate.way.write(payload, idempotencyKey);
  if (header.value.length > maxHeaderLength) {
    throw new PaymentError(
      "payment_too_large",
      `The members to repeat make the payment longer than ${maxHeaderLength} characters`,
    );
  }
  return {
    request: { method: request.method, url: request.url.href, bodyHash: hashBody(request) },
    sendTo: url.href,
    header,
    idempotencyKey,
    terms,
  };
}
