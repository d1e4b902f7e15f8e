import { randomBytes } from "node:crypto";
import {
  type Challenge,
  chainIdOf,
  encodeChargeRequest,
  encodeOpaque,
  evmCharge,
  findKnownToken,
  formatChallenge,
  type PaymentRequirements,
  toLowerHex,
} from "@coinslot/protocol";
import type { Request } from "express";
import { getAddress } from "viem";
import type { Offer } from "../../offer/offer.ts";
import { challengeIdOf } from "./challenge-id.ts";
import { challengedUrlOf } from "./challenged-url.ts";
import { hasChallenge } from "./has-challenge.ts";

/** Most challenges of an answer: clients of Node take 16 KB of headers in all. */
export const maxChallenges = 8;
/** Longest description that is sent. Each challenge repeats it. */
const maxDescription = 128;

/** The part of a challenge that is the same in every answer to one offer. */
export interface ChargeTemplate {
  request: string;
  maxTimeoutSeconds: number;
  description: string | undefined;
}

/** The charges of an offer, for the ways that buyers of MPP can sign. */
export function chargesOf(offer: Offer, description: string | undefined): ChargeTemplate[] {
  return offer
    .filter(hasChallenge)
    .slice(0, maxChallenges)
    .map(({ requirements }) => ({
      request: encodeRequest(requirements),
      maxTimeoutSeconds: requirements.maxTimeoutSeconds,
      description: isShown(description) ? description : undefined,
    }));
}

function encodeRequest({ network, asset, payTo, amount }: PaymentRequirements): string {
  const decimals = findKnownToken(network, toLowerHex(asset))?.decimals;
  return encodeChargeRequest({
    amount,
    currency: getAddress(asset),
    recipient: getAddress(payTo),
    methodDetails: {
      chainId: chainIdOf(network),
      credentialTypes: ["authorization"],
      ...(decimals === undefined ? {} : { decimals }),
    },
  });
}

/** Headers carry ASCII, and a description is for display alone. */
function isShown(description: string | undefined): boolean {
  return description !== undefined && /^[\x20-\x7e]+$/.test(description)
    ? description.length <= maxDescription
    : false;
}

/** Writes a fresh challenge for a charge. No two are alike. */
export function writeChallenge(
  { request: encoded, maxTimeoutSeconds, description }: ChargeTemplate,
  options: {
    request: Request;
    realm: string;
    secret: string;
    header: Challenge["header"];
    /** Unix milliseconds. */
    now: number;
  },
): string {
  const { request, realm, secret, header, now } = options;
  const salt = randomBytes(16).toString("base64url");
  const terms = {
    realm,
    ...evmCharge,
    request: encoded,
    expires: formatExpiry(now, maxTimeoutSeconds),
    ...(header === undefined ? {} : { header }),
    opaque: encodeOpaque({ for: challengedUrlOf(request), salt }),
  };
  const shown = description === undefined ? {} : { description };
  return formatChallenge({ id: challengeIdOf(terms, secret), ...terms, ...shown });
}

/** Whole seconds, in UTC. */
function formatExpiry(now: number, seconds: number): string {
  const at = new Date((Math.floor(now / 1000) + seconds) * 1000);
  return at.toISOString().replace(".000Z", "Z");
}
