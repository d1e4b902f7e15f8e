import {
  type Challenge,
  challengeNonce,
  decodePaymentRequired,
  type ExactEvmPayload,
  encodeCredential,
  formatSource,
  type Hex,
  headerName,
  type OfferedRequirements,
  parseChallenges,
  parsePaymentRequiredV1,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import { getAddress } from "viem";
import type { OfferedWay } from "../cycles/cycle.ts";
import { parseJson } from "../decode/header-value.ts";
import { attempt, readOfferOfBody, readOffersOfHead } from "../decode/read-offers.ts";
import { type NamedOtherwise, nameAccepted, nameChallenge } from "./write-named.ts";

/** The offer of a replayed request. */
export interface FreshOffer {
  ways: OfferedWay[];
  /**
   * Writes a payment for one of the ways.
   *
   * @param named members to repeat otherwise than offered
   */
  write(
    way: OfferedWay,
    paid: ExactEvmPayload,
    named: NamedOtherwise,
  ): [string, string] | undefined;
  /** The nonce that a way binds. */
  nonceOf(way: OfferedWay): Hex | undefined;
}

/** Reads the offers of an answer, and keeps what a payment must repeat. */
export function readFreshOffer(answer: Response, body: string): FreshOffer {
  const headers = [...answer.headers];
  const json = parseJson(body);
  const head = readOffersOfHead(headers);
  const ways = [...head.ways, ...readOfferOfBody(json).ways];
  const required = answer.headers.get(headerName.paymentRequired) ?? "";
  const v2 = attempt(() => decodePaymentRequired(required));
  const v1 = attempt(() => parsePaymentRequiredV1(json));
  const challenges = parseChallenges(answer.headers.get(headerName.authenticate) ?? "");
  const challengeOf = (way: OfferedWay): Challenge | undefined =>
    challenges
      .flatMap((read) => (read.ok ? [read.challenge] : []))
      .find(({ id }) => id === way.challenge?.id);
  const entryOf = (way: OfferedWay): OfferedRequirements | undefined => {
    const read = way.wire === "x402 v1" ? v1 : v2;
    return read.ok
      ? read.value.accepts.find(
          ({ requirements: { network, asset, amount, payTo } }) =>
            network === way.network &&
            asset === way.asset &&
            amount === way.amount &&
            payTo === way.payTo,
        )
      : undefined;
  };
  return {
    ways,
    nonceOf(way) {
      const challenge = challengeOf(way);
      return challenge && challengeNonce(challenge);
    },
    write(way, payload, named) {
      const challenge = challengeOf(way);
      if (challenge !== undefined) return writeCredential(challenge, way, { payload, named });
      const entry = entryOf(way);
      if (entry === undefined) return undefined;
      if (entry.x402Version === 1) {
        const { scheme = way.scheme, network = entry.networkName } = named;
        return [headerName.payment, encode({ x402Version: 1, scheme, network, payload })];
      }
      const accepted = nameAccepted(entry.accepted, named);
      const resource = v2.ok ? v2.value.resource : undefined;
      const message = { x402Version: 2, payload, accepted, resource };
      return [headerName.paymentSignature, encode(message)];
    },
  };
}

/** The schemas of the protocol hold for what is right: a replay repeats what was wrong. */
function encode(message: object): string {
  return Buffer.from(JSON.stringify(message)).toString("base64");
}

function writeCredential(
  challenge: Challenge,
  { network }: OfferedWay,
  { payload: paid, named }: { payload: ExactEvmPayload; named: NamedOtherwise },
): [string, string] {
  const isApart = challenge.header !== undefined;
  const name = isApart ? headerName.paymentAuthorization : headerName.authorization;
  const payer = getAddress(paid.authorization.from);
  const chain = Number(network.slice("eip155:".length));
  const source = named.source ?? formatSource(`eip155:${chain}`, payer);
  const payload = writeAuthorizationPayload(paid);
  const echoed = nameChallenge(challenge, named);
  return [name, encodeCredential({ challenge: echoed, payload, source })];
}
