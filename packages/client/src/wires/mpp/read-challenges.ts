import {
  authorizationType,
  type Challenge,
  type ChargeRequest,
  challengeNonce,
  DecodeError,
  decodeChargeRequest,
  encodeCredential,
  evmCharge,
  formatSource,
  headerName,
  isCanonicalRequest,
  maxHeaderLength,
  minimumSettlementSeconds,
  networkOf,
  parseChallenges,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import { getAddress } from "viem";
import type { OfferedWay } from "../wire.ts";

/** Validity of an authorization for a challenge that names no end, as the reference has it. */
const defaultValiditySeconds = 300;

/** Room in a credential for what a plain key adds, at most, in characters of base64. */
const proofLength = 732;

interface Circumstances {
  /** Unix milliseconds. */
  now: number;
  /** The request has an `Authorization` of its own, which a credential would replace. */
  hasAuthorization: boolean;
}

/**
 * Reads the challenges of a `WWW-Authenticate` header, each apart: a bad one spoils no other.
 * Challenges of other methods, and charges that cannot be read, are left out.
 *
 * @returns `undefined` when no challenge of the `Payment` scheme can be read
 */
export function readChallenges(header: string, given: Circumstances): OfferedWay[] | undefined {
  const challenges = parseChallenges(header).flatMap((read) => (read.ok ? [read.challenge] : []));
  return challenges.length === 0
    ? undefined
    : challenges.flatMap((challenge) => {
        const charge = readCharge(challenge);
        return charge === undefined ? [] : [wayOf(challenge, charge, given)];
      });
}

function readCharge({ method, intent, request }: Challenge): ChargeRequest | undefined {
  if (method !== evmCharge.method || intent !== evmCharge.intent) return undefined;
  try {
    return decodeChargeRequest(request);
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

function wayOf(challenge: Challenge, charge: ChargeRequest, given: Circumstances): OfferedWay {
  const { amount, currency, recipient, methodDetails } = charge;
  const network = networkOf(methodDetails.chainId);
  const end = endOf(challenge);
  return {
    protocol: "mpp",
    network,
    asset: currency,
    payTo: recipient,
    amount,
    token: { decimals: methodDetails.decimals },
    fault: findFault(challenge, charge, given),
    description: challenge.description ?? charge.description,
    nonce: challengeNonce(challenge),
    endAt: (now) => end ?? now + defaultValiditySeconds,
    write: (paid) => ({
      name:
        challenge.header === undefined ? headerName.authorization : headerName.paymentAuthorization,
      value: encodeCredential({
        challenge,
        payload: writeAuthorizationPayload(paid),
        source: formatSource(network, getAddress(paid.authorization.from)),
      }),
    }),
  };
}

/** The end of a challenge in unix seconds, rounded down. */
function endOf({ expires }: Challenge): number | undefined {
  return expires === undefined ? undefined : Math.floor(Date.parse(expires) / 1000);
}

function findFault(
  challenge: Challenge,
  { methodDetails }: ChargeRequest,
  { now, hasAuthorization }: Circumstances,
): string | undefined {
  const { header, request } = challenge;
  if (!methodDetails.credentialTypes?.includes(authorizationType)) {
    return "Only credentials of the type authorization are paid with";
  }
  if (methodDetails.splits !== undefined) return "A charge with splits is not paid";
  // The seller's id binds the text of the request: another text for it would be another challenge.
  if (!isCanonicalRequest(request)) return "The challenge's request is not canonical";
  // A credential in any other header could reach whatever reads that one.
  if (header !== undefined && header.toLowerCase() !== "payment-authorization") {
    return "The challenge asks for payment in a header that carries none";
  }
  if (header === undefined && hasAuthorization) {
    return "A payment would replace the request's own Authorization header";
  }
  // Left to the signed payment, one too long would spoil the ways beside it.
  const empty = encodeCredential({ challenge, payload: { type: authorizationType } });
  if (empty.length > maxHeaderLength - proofLength) {
    return "The challenge is too long for the header of its payment";
  }
  const end = endOf(challenge) ?? Number.POSITIVE_INFINITY;
  return end < now / 1000 + minimumSettlementSeconds
    ? "The challenge has expired, or leaves no time to settle"
    : undefined;
}
