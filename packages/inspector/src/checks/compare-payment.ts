import {
  challengeNonce,
  formatSource,
  isNetwork,
  isSameAddress,
  isSourceOf,
  minimumSettlementSeconds,
  parseNetwork,
  toLowerHex,
} from "@coinslot/protocol";
import type { Comparison, OfferedWay } from "../cycles/cycle.ts";
import { sealOf } from "../decode/read-offers.ts";
import type { PresentedPayment } from "../decode/read-payment.ts";

/** A payment beside the way of the offer that comes closest, member by member. */
export interface Compared {
  /** `undefined` where no offer of its wire has passed. */
  way: OfferedWay | undefined;
  comparisons: Comparison[];
}

/** Seconds of a day: sellers of ours refuse an authorization that is good for longer. */
const maxValiditySeconds = 86_400n;

/**
 * Compares a payment with the offered ways, in the order in which a seller checks. The signature is
 * compared elsewhere.
 *
 * @param now unix milliseconds of the payment
 */
export function comparePayment(
  presented: PresentedPayment,
  ways: readonly OfferedWay[],
  now: number,
): Compared {
  const candidates = ways.filter(({ wire }) => wire === presented.wire);
  const compared = candidates.map((way) => ({
    way,
    comparisons: compareWith(presented, way, now),
  }));
  const [closest] = compared.sort((a, b) => faults(a) - faults(b));
  return closest ?? { way: undefined, comparisons: compareTimes(presented, undefined, now) };
}

function faults({ comparisons }: Compared): number {
  return comparisons.filter(({ verdict }) => verdict === "differs").length;
}

function compareWith(presented: PresentedPayment, way: OfferedWay, now: number): Comparison[] {
  const { terms, paid, wire } = presented;
  const named = wire === "x402 v2" ? "accepted." : wire === "MPP" ? "request." : "";
  const rows: (Comparison | undefined)[] = [
    compareChallenge(presented, way),
    compare("scheme", `${named}scheme`, way.scheme, terms.scheme),
    compareNetworks(`${named}network`, way.network, terms.network),
    compareAddresses("asset", `${named}asset`, way.asset, terms.asset),
    compareAddresses("recipient", `${named}payTo`, way.payTo, terms.payTo),
    compare("amount", `${named}amount`, way.amount, terms.amount),
    ...compareDomainOfTerms(presented, way),
    compareSeals(presented, way),
  ];
  if (paid !== undefined) {
    rows.push(
      compareAddresses("recipient", "authorization.to", way.payTo, paid.authorization.to),
      compareAmounts(presented, way),
      ...compareTimes(presented, way, now),
      compareNonce(presented),
      compareSource(presented),
    );
  }
  return rows.filter((row) => row !== undefined);
}

function compareChallenge(
  { challenge }: PresentedPayment,
  way: OfferedWay,
): Comparison | undefined {
  if (challenge === undefined || way.challenge === undefined) return undefined;
  const row = compare("challenge", "challenge.id", way.challenge.id, challenge.id);
  if (row === undefined || row.verdict === "same") return row;
  return { ...row, note: "The credential answers a challenge that was not part of this offer." };
}

/** The members of a challenge that are no terms, such as `opaque`. */
function compareSeals({ challenge }: PresentedPayment, way: OfferedWay): Comparison | undefined {
  const { id, seal } = way.challenge ?? {};
  if (challenge === undefined || seal === undefined || challenge.id !== id) return undefined;
  const isSame = sealOf(challenge) === seal;
  const row = { check: "challenge", member: "challenge", offered: "as offered" } as const;
  if (isSame) return { ...row, presented: "as offered", verdict: "same" };
  const note = "A credential repeats realm, method, intent, request, digest, expires and opaque.";
  return { ...row, presented: "changed", verdict: "differs", note };
}

function compareSource({ source, paid, terms }: PresentedPayment): Comparison | undefined {
  const { network } = terms;
  if (source === undefined || paid === undefined || network === undefined) return undefined;
  if (!isNetwork(network)) return undefined;
  const { from } = paid.authorization;
  const verdict = isSourceOf(source, network, toLowerHex(from)) ? "same" : "differs";
  const offered = formatSource(network, toLowerHex(from));
  const row: Comparison = {
    check: "source",
    member: "source",
    offered,
    presented: source,
    verdict,
  };
  return verdict === "same" ? row : { ...row, note: "The source must be the payer that signs." };
}

function compareNonce({ challenge, paid }: PresentedPayment): Comparison | undefined {
  if (challenge === undefined || paid === undefined) return undefined;
  const expected = challengeNonce(challenge);
  const row = compare(
    "nonce",
    "authorization.nonce",
    expected,
    paid.authorization.nonce.toLowerCase(),
  );
  if (row === undefined || row.verdict === "same") return row;
  return { ...row, note: "The nonce must be the Keccak-256 of the challenge's id and realm." };
}

function compareDomainOfTerms({ terms }: PresentedPayment, way: OfferedWay): Comparison[] {
  const { extra } = terms;
  if (extra === undefined || way.domain === undefined) return [];
  const rows = (["name", "version"] as const).map((member) => {
    const said = extra[member];
    const presented = typeof said === "string" ? said : undefined;
    return compare(`domain ${member}`, `accepted.extra.${member}`, way.domain?.[member], presented);
  });
  return rows.filter((row) => row !== undefined);
}

function compareAmounts({ paid, wire }: PresentedPayment, way: OfferedWay): Comparison | undefined {
  const row = compare("amount", "authorization.value", way.amount, paid?.authorization.value);
  if (row === undefined || paid === undefined || row.verdict === "same") return row;
  const difference = BigInt(paid.authorization.value) - BigInt(way.amount);
  if (difference > 0n && wire === "x402 v1") {
    return { ...row, verdict: "same", note: `${difference} units more than asked, which is valid` };
  }
  return {
    ...row,
    note: difference > 0n ? `${difference} units too many` : `${-difference} units too few`,
  };
}

function compareTimes(
  { paid }: PresentedPayment,
  way: OfferedWay | undefined,
  now: number,
): Comparison[] {
  if (paid === undefined) return [];
  const { validAfter, validBefore } = paid.authorization;
  const seconds = BigInt(Math.floor(now / 1000));
  const after = BigInt(validAfter) - seconds;
  const left = BigInt(validBefore) - seconds;
  const longest = BigInt(Math.max(2 * (way?.maxTimeoutSeconds ?? 0), Number(maxValiditySeconds)));
  const early: Comparison = {
    check: "valid from",
    member: "authorization.validAfter",
    offered: `at most ${seconds} (now)`,
    presented: validAfter,
    verdict: after > 0n ? "differs" : "same",
  };
  const late: Comparison = {
    check: "valid until",
    member: "authorization.validBefore",
    offered: `${minimumSettlementSeconds} s from now at least, and time for the handler`,
    presented: validBefore,
    verdict: left <= BigInt(minimumSettlementSeconds) || left > longest ? "differs" : "same",
  };
  if (after > 0n) early.note = `It is valid in ${after} s: the buyer's clock may be wrong.`;
  if (left <= 0n) late.note = `It expired ${-left} s ago. Are these milliseconds, or a slow clock?`;
  else if (left > longest) late.note = `${left} s from now: longer than a seller must watch it.`;
  else late.note = `${left} s left when it came`;
  const expires = way?.challenge?.expires;
  if (expires !== undefined && BigInt(validBefore) * 1000n > BigInt(Date.parse(expires))) {
    late.offered = `at most the challenge's expires, ${expires}`;
    late.verdict = "differs";
    late.note = "The authorization must end with its challenge at the latest.";
  }
  return [early, late];
}

function compareNetworks(
  member: string,
  offered: string,
  presented: string | undefined,
): Comparison | undefined {
  const known = presented === undefined ? undefined : (parseNetwork(presented) ?? presented);
  return compare("network", member, offered, known);
}

function compareAddresses(
  check: string,
  member: string,
  offered: string,
  presented: string | undefined,
): Comparison | undefined {
  if (presented === undefined) return undefined;
  const verdict = isSameAddress(offered, presented) ? "same" : "differs";
  return { check, member, offered, presented, verdict };
}

function compare(
  check: string,
  member: string,
  offered: string | undefined,
  presented: string | undefined,
): Comparison | undefined {
  if (offered === undefined || presented === undefined) return undefined;
  return { check, member, offered, presented, verdict: offered === presented ? "same" : "differs" };
}
