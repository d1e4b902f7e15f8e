import { chainIdOf, isSameAddress, type TokenDomain } from "@coinslot/protocol";
import { type DomainOfToken, domainSeparator } from "../evm/domain-separator.ts";
import type { TokenFacts } from "./token-facts.ts";

/** Difference between the domain of the offer, under which payers sign, and the token's own. */
export type DomainComparison =
  | { result: "same" }
  /** `name`, `version`: the token's own values, each where it differs. */
  | { result: "differs"; name?: string; version?: string }
  /** It differs, or may differ, and the token does not return in what. */
  | { result: "unknown" };

/**
 * Compares a configured EIP-712 domain with the token's own. The separator decides, since
 * signatures are checked against it. `eip712Domain()`, else `name()` and `version()`, show the
 * difference. `name()` alone proves nothing: a token may have one name and sign under another.
 */
export function compareDomain(configured: DomainOfToken, facts: TokenFacts): DomainComparison {
  const { domain } = configured;
  const separator = facts.domainSeparator?.toLowerCase();
  if (separator !== undefined && separator === domainSeparator(configured))
    return { result: "same" };

  const own = ownDomain(configured, facts);
  if (own === undefined) return { result: "unknown" };
  const candidates: TokenDomain[] =
    separator === undefined
      ? [own]
      : [
          { name: own.name, version: domain.version },
          { name: domain.name, version: own.version },
          own,
        ].filter(
          (candidate) => domainSeparator({ ...configured, domain: candidate }) === separator,
        );
  const [actual] = candidates;
  if (actual === undefined) return { result: "unknown" };
  if (actual.name === domain.name && actual.version === domain.version) return { result: "same" };
  return {
    result: "differs",
    ...(actual.name === domain.name ? {} : { name: actual.name }),
    ...(actual.version === domain.version ? {} : { version: actual.version }),
  };
}

/** The domain that the token returns, unless it is one of another chain or contract. */
function ownDomain(
  { network, asset, domain }: DomainOfToken,
  facts: TokenFacts,
): TokenDomain | undefined {
  const reported = facts.domain;
  if (reported !== undefined) {
    const isHere =
      reported.chainId === BigInt(chainIdOf(network)) &&
      isSameAddress(reported.verifyingContract, asset);
    return isHere ? { name: reported.name, version: reported.version } : undefined;
  }
  if (facts.name === undefined && facts.version === undefined) return undefined;
  return { name: facts.name ?? domain.name, version: facts.version ?? domain.version };
}
