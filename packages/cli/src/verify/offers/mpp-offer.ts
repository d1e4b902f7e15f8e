import {
  type Challenge,
  DecodeError,
  decodeChargeRequest,
  evmCharge,
  headerName,
  isCanonicalRequest,
  networkOf,
  parseChallenges,
} from "@coinslot/protocol";
import { type Answer, headerOf } from "../ask-seller.ts";
import { failed, passed, warning } from "../check.ts";
import { toChallengedWay, type Way } from "../way.ts";
import type { WireOffer } from "./read-offers.ts";

/** The `Payment` challenges of `WWW-Authenticate`, as MPP clients read them. */
export function readMppOffer(answer: Answer): WireOffer {
  const header = headerOf(answer, headerName.authenticate) ?? "";
  const read = parseChallenges(header);
  if (read.length === 0) {
    return { status: "not offered", found: "there is no Payment challenge", ways: [] };
  }
  const challenges = read.flatMap((each) => (each.ok ? [each.challenge] : []));
  const charges = challenges.filter(
    ({ method, intent }) => method === evmCharge.method && intent === evmCharge.intent,
  );
  const ways = charges.flatMap((challenge) => toWay(challenge) ?? []);
  return { ...judge({ header, read: read.length, challenges, charges, ways }), ways };
}

function judge(offer: {
  header: string;
  read: number;
  challenges: readonly Challenge[];
  charges: readonly Challenge[];
  ways: readonly Way[];
}) {
  const { header, read, challenges, charges, ways } = offer;
  if (challenges.length < read) {
    return failed("a challenge cannot be read, and mppx refuses the whole answer for one");
  }
  if (charges.length === 0) return warning("no challenge has method evm and intent charge");
  if (ways.length < charges.length) {
    return failed(
      "a challenge's request is unreadable, not canonical, has no credential type authorization, or never expires",
    );
  }
  if (!/^payment[ \t]/i.test(header)) {
    return warning("another scheme stands before Payment: some clients read the first one alone");
  }
  const count = ways.length === 1 ? "1 challenge" : `${ways.length} challenges`;
  return passed(`mppx reads it where it knows the token's domain (${count})`);
}

/** `undefined` for what an EIP-3009 authorization cannot answer. */
function toWay(challenge: Challenge): Way | undefined {
  const expires = Math.floor(Date.parse(challenge.expires ?? "") / 1000);
  if (Number.isNaN(expires)) return undefined;
  try {
    const { amount, currency, recipient, methodDetails } = decodeChargeRequest(challenge.request);
    const { chainId, credentialTypes = [], splits = [] } = methodDetails;
    const isPayable = credentialTypes.includes("authorization") && splits.length === 0;
    if (!isPayable || !isCanonicalRequest(challenge.request)) return undefined;
    const requirements = {
      scheme: "exact",
      network: networkOf(chainId),
      amount,
      asset: currency,
      payTo: recipient,
      maxTimeoutSeconds: 1,
      extra: undefined,
    };
    return toChallengedWay(challenge, { requirements, expires });
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}
