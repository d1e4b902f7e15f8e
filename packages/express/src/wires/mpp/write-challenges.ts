import type { KeyObject } from "node:crypto";
import {
  type Challenge,
  chainIdOf,
  encodeChargeRequest,
  evmCharge,
  findKnownToken,
  type PaymentRequirements,
  prepareChallenge,
  toLowerHex,
} from "@coinslot/protocol";
import type { Request } from "express";
import { getAddress } from "viem";
import type { Offer } from "../../offer/offer.ts";
import { prepareChallengeId } from "./challenge-id.ts";
import { challengedUrlOf, hashUrl } from "./challenged-url.ts";
import { hasChallenge } from "./has-challenge.ts";
import type { MakeAhead } from "./make-ahead.ts";
import { prepareOpaque } from "./prepare-opaque.ts";
import { rememberLast } from "./remember-last.ts";

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

/** Writes the challenges of one answer, one for each charge. No two are ever alike. */
export type WriteChallenges = (options: {
  request: Request;
  realm: string;
  /** Unix milliseconds. */
  now: number;
}) => string[];

/** Takes the challenges of an answer out of those that were made ahead for a second. */
export type TakeChallenges = MakeAhead<number, string[]>;

/**
 * Prepares the challenges of an offer. Parts that most answers share are made once. A realm shares
 * all members but three, a URL the start of `opaque`, a second the text of its expiry.
 */
export function prepareChallenges(
  charges: readonly ChargeTemplate[],
  made: { key: KeyObject; header: Challenge["header"]; take: TakeChallenges },
): WriteChallenges {
  const ofRealm = rememberLast((realm: string) => {
    const writers = charges.map((charge) => prepareCharge(charge, { realm, ...made }));
    return rememberLast((url: string) => {
      const writeOpaque = prepareOpaque(hashUrl(url));
      return (second: number) => writers.map((write) => write(writeOpaque(), second));
    });
  });
  return ({ request, realm, now }) =>
    made.take(ofRealm(realm)(challengedUrlOf(request)), Math.floor(now / 1000));
}

function prepareCharge(
  { request, maxTimeoutSeconds, description }: ChargeTemplate,
  { realm, key, header }: { realm: string; key: KeyObject; header: Challenge["header"] },
): (opaque: string, second: number) => string {
  const terms = { realm, ...evmCharge, request, ...(header === undefined ? {} : { header }) };
  const write = prepareChallenge({
    ...terms,
    ...(description === undefined ? {} : { description }),
  });
  const idOf = prepareChallengeId(terms, key);
  const expiryOf = rememberLast(formatSecond);
  return (opaque, second) => {
    const expires = expiryOf(second + maxTimeoutSeconds);
    return write({ id: idOf({ expires, opaque }), expires, opaque });
  };
}

/** Whole seconds, in UTC. */
function formatSecond(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}
