import type { IncomingMessage } from "node:http";
import {
  type Challenge,
  type ChargeRequest,
  type Credential,
  challengeNonce,
  decodeChargeRequest,
  decodeCredential,
  type ExactEvmPayload,
  evmCharge,
  freezeMessage,
  isPaymentScheme,
  isSameAddress,
  isSourceOf,
  type Network,
  networkOf,
  readAuthorizationPayload,
  toLowerHex,
} from "@coinslot/protocol";
import type { Request } from "express";
import { PaymentFault } from "../wire.ts";
import { type ChallengeKeys, isIdOfKeys } from "./challenge-id.ts";
import { challengedUrlOf, hashUrl } from "./challenged-url.ts";
import { startOfOpaque } from "./prepare-opaque.ts";
import { rememberLast } from "./remember-last.ts";

/** Headers that carry a credential, in lower case. */
export const credentialHeaders = ["authorization", "payment-authorization"] as const;

/** A payment that answers one of our challenges, for this request. */
export interface ChallengedPayment {
  challenge: Challenge;
  charge: ChargeRequest;
  network: Network;
  payload: ExactEvmPayload;
}

/**
 * Counts the credentials of a request. Node drops every `Authorization` line but the first, so any
 * further one beside a credential counts, too.
 */
export function countCredentials({ headers, rawHeaders }: IncomingMessage): number {
  if (credentialHeaders.every((name) => headers[name] === undefined)) return 0;
  return credentialHeaders.reduce((count, name) => count + countLines(rawHeaders, name), 0);
}

/** Counts the lines of a header, if one of them is a credential. */
function countLines(rawHeaders: readonly string[], name: string): number {
  let lines = 0;
  let isCredential = false;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const rawName = rawHeaders[index] ?? "";
    if (rawName.length !== name.length || rawName.toLowerCase() !== name) continue;
    lines += 1;
    isCredential ||= isPaymentScheme(rawHeaders[index + 1] ?? "");
  }
  return isCredential ? lines : 0;
}

/**
 * Reads the credential of a request, and proves that it answers a challenge of ours for this
 * request. Asks neither a chain nor the ledger.
 *
 * @throws DecodeError where it has not the form of a credential
 * @throws PaymentFault where it answers no challenge of ours, or not as the challenge wants it
 */
export function readCredential(
  request: Request,
  proof: { keys: ChallengeKeys; readCharge: ReadCharge; realm: string },
): ChallengedPayment {
  const value = credentialHeaders
    .map((name) => String(request.headers[name] ?? ""))
    .find((each) => isPaymentScheme(each));
  const credential = decodeCredential(value ?? "");
  const { challenge } = credential;
  const charge = readOwnChallenge(challenge, { request, ...proof });
  const network = networkOf(charge.methodDetails.chainId);
  return { challenge, charge, network, payload: readPayload(credential, { charge, network }) };
}

/** Reads the `request` of a challenge that is ours. */
export type ReadCharge = (request: string) => ChargeRequest;

const maxKnown = 64;

/** Creates a reader that remembers the last requests: a route's challenges have the same few. */
export function createChargeReader(): ReadCharge {
  const known = new Map<string, ChargeRequest>();
  return (request) => {
    const found = known.get(request);
    if (found !== undefined) return found;
    const charge = freezeMessage(decodeChargeRequest(request));
    if (known.size >= maxKnown) known.clear();
    known.set(request, charge);
    return charge;
  };
}

/** The start of `opaque` for a URL. */
const startFor = rememberLast((url: string) => startOfOpaque(hashUrl(url)));

function readOwnChallenge(
  challenge: Challenge,
  expected: { request: Request; keys: ChallengeKeys; readCharge: ReadCharge; realm: string },
): ChargeRequest {
  const { request, keys, readCharge, realm } = expected;
  const { method, intent } = challenge;
  const isOurs =
    method === evmCharge.method &&
    intent === evmCharge.intent &&
    challenge.realm === realm &&
    isIdOfKeys(challenge, keys);
  if (!isOurs || challenge.opaque === undefined) throw new PaymentFault("invalid_challenge");
  // The id proves that both texts are ours, in the one form in which they are written.
  if (!challenge.opaque.startsWith(startFor(challengedUrlOf(request))))
    throw new PaymentFault("invalid_challenge");
  return readCharge(challenge.request);
}

function readPayload(
  credential: Credential,
  { charge, network }: { charge: ChargeRequest; network: Network },
): ExactEvmPayload {
  const { challenge, source } = credential;
  const payload = readAuthorizationPayload(credential);
  if (payload === undefined) throw new PaymentFault("invalid_credential");
  const { from, to, value, validBefore, nonce } = payload.authorization;
  const answers =
    toLowerHex(nonce) === challengeNonce(challenge) &&
    isSameAddress(to, charge.recipient) &&
    value === charge.amount &&
    BigInt(validBefore) * 1000n <= BigInt(Date.parse(challenge.expires ?? "")) &&
    (source === undefined || isSourceOf(source, network, from));
  if (!answers) throw new PaymentFault("invalid_credential");
  return payload;
}
