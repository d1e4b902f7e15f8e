import type { ServerResponse } from "node:http";
import {
  chainIdOf,
  composePaymentV2,
  encodePaymentReceipt,
  evmCharge,
  headerName,
  type InvalidReason,
  invalidReasons,
  isPaymentScheme,
  isSameAddress,
  problemMediaType,
} from "@coinslot/protocol";
import type { Request } from "express";
import type { ChallengeSecrets, MppSettings } from "../../mpp-options.ts";
import type { Offer } from "../../offer/offer.ts";
import { type Purchase, readPurchase } from "../../offer/purchase.ts";
import { hostnameOf } from "../../offer/resource.ts";
import {
  answerNotKept,
  facilitatorFault,
  inUse,
  paymentRefunded,
  paymentUsedUp,
  type Refusal,
  settlementFailed,
  settlementPending,
} from "../../refusals.ts";
import { removeHeader } from "../payment-header.ts";
import type { OfferPart, PaymentDemand, PaymentFailure, Wire } from "../wire.ts";
import { keysOf } from "./challenge-id.ts";
import { hasChallenge } from "./has-challenge.ts";
import { createMakeAhead } from "./make-ahead.ts";
import { prependChallenges } from "./prepend-challenges.ts";
import { problemOf } from "./problem-of.ts";
import {
  type ChallengedPayment,
  countCredentials,
  createChargeReader,
  credentialHeaders,
  readCredential,
} from "./read-credential.ts";
import { chargesOf, prepareChallenges, type TakeChallenges } from "./write-challenges.ts";

/** Headers of answers that a page on another origin may read. */
export const exposedByMpp = [headerName.authenticate, headerName.paymentReceipt];

/**
 * MPP: challenges of the `Payment` scheme, method `evm`, intent `charge`, paid by EIP-3009. A
 * credential repeats its challenge, whose id proves that this application made it for this URL.
 */
export function createMpp(options: {
  mpp: MppSettings;
  secrets: ChallengeSecrets;
  publicUrl?: string | undefined;
  /** Unix milliseconds. */
  now: () => number;
}): Wire<ChallengedPayment> {
  const { now, publicUrl } = options;
  const { header, realm } = options.mpp;
  const keys = keysOf(options.secrets);
  const readCharge = createChargeReader();
  const take: TakeChallenges = createMakeAhead();
  const realmOf = (request: Request) => realm ?? hostnameOf(request, publicUrl);

  function writeOffer({ offer, resource, error }: PaymentDemand): OfferPart {
    const charges = chargesOf(offer, resource.description);
    if (charges.length === 0) return {};
    const writeChallenges = prepareChallenges(charges, { key: keys.current, header, take });
    return {
      body: problemOf(error),
      mediaType: problemMediaType,
      writeHead(response) {
        const { req: request } = response;
        const fresh = { request, realm: realmOf(request), now: now() };
        prependChallenges(response, writeChallenges(fresh));
      },
    };
  }

  return {
    name: "mpp",
    writeOffer,
    countPayments: countCredentials,
    sells: (offer) => offer.some(hasChallenge),
    read: (request) => readCredential(request, { keys, readCharge, realm: realmOf(request) }),
    withhold(request) {
      for (const name of credentialHeaders) {
        if (isPaymentScheme(String(request.headers[name] ?? ""))) removeHeader(request, name);
      }
    },
    match,
    statedTerms: ({ charge: { amount, currency, recipient } }) => ({
      payTo: recipient,
      price: { amount, asset: currency },
    }),
    writeReceipt(response, settlement, { challenge, charge, network }) {
      removeReceipt(response);
      if (!settlement.success || response.statusCode >= 400) return;
      const receipt = encodePaymentReceipt({
        status: "success",
        method: evmCharge.method,
        timestamp: new Date(settlement.settledAt ?? now()).toISOString(),
        reference: settlement.transaction,
        challengeId: challenge.id,
        chainId: chainIdOf(network),
        ...(charge.externalId === undefined ? {} : { externalId: charge.externalId }),
      });
      response.setHeader(headerName.paymentReceipt, receipt);
    },
    removeReceipt,
    refuse,
  };
}

function removeReceipt(response: ServerResponse): void {
  response.removeHeader(headerName.paymentReceipt);
}

function match({ charge, network, payload }: ChallengedPayment, offer: Offer): Purchase[] {
  const found = offer.find(
    (way) =>
      hasChallenge(way) &&
      way.requirements.network === network &&
      way.requirements.amount === charge.amount &&
      isSameAddress(way.requirements.asset, charge.currency) &&
      isSameAddress(way.requirements.payTo, charge.recipient),
  );
  if (found === undefined) return [];
  const { requirements: accepted } = found;
  // Facilitators know x402 only, and no challenges.
  return readPurchase(composePaymentV2({ payload, accepted }), accepted);
}

function isPending(errorReason: string | undefined): boolean {
  return errorReason === "settlement_pending" || errorReason === "unexpected_settle_error";
}

/**
 * Returns whether a settlement was refused before a transaction was sent. Reasons that are unknown
 * here do not count: other facilitators name a transaction without an outcome differently, and may
 * leave its hash out. Nor does a used nonce: another sender may have executed the payment.
 */
function isOfVerification(errorReason: string | undefined): boolean {
  return (
    errorReason === "insufficient_funds" ||
    (errorReason !== nonceUsed && invalidReasons.some((name) => name === errorReason))
  );
}

const nonceUsed: InvalidReason = "invalid_exact_evm_nonce_already_used";

/** Never a 402 where money has moved or may still move: some buyers sign at every 402. */
function refuse(failure: PaymentFailure): Refusal | undefined {
  switch (failure.kind) {
    case "malformed":
      return undefined;
    case "invalid":
      return failure.reason === "unexpected_verify_error" ? facilitatorFault(undefined) : undefined;
    case "used_up":
      return paymentUsedUp(failure.settlement.transaction);
    case "refunded":
      return paymentRefunded(failure.settlement.transaction);
    case "unsettled": {
      const { errorReason, transaction } = failure.settlement;
      if (errorReason === "duplicate_settlement") return inUse;
      if (isPending(errorReason)) return settlementPending(transaction);
      if (transaction !== "") return settlementFailed(transaction);
      return isOfVerification(errorReason) ? undefined : settlementPending(transaction);
    }
    case "delivered":
      return answerNotKept(failure.settlement.transaction);
  }
}
