import {
  type Address,
  chainIdOf,
  isSameAddress,
  type Network,
  type TokenDomain,
} from "@coinslot/protocol";
import { domainSeparator } from "../evm/domain-separator.ts";
import type { TokenFacts } from "../token/token-facts.ts";

/**
 * The EIP-712 domain of a token, from its facts; `undefined` where none has its separator. Chain
 * and contract are ours. So no node has a transfer signed for another token or chain.
 */
export function tokenDomain(
  { network, asset }: { network: Network; asset: Address },
  { domain, name, version, domainSeparator: separator }: TokenFacts,
): TokenDomain | undefined {
  const isHere =
    domain?.chainId === BigInt(chainIdOf(network)) &&
    isSameAddress(domain.verifyingContract, asset);
  const candidates: TokenDomain[] = [
    ...(domain && isHere ? [{ name: domain.name, version: domain.version }] : []),
    ...(name === undefined ? [] : [version, "1", "2"]).flatMap((each) =>
      name === undefined || each === undefined ? [] : [{ name, version: each }],
    ),
  ];
  return candidates.find(
    (each) =>
      separator === undefined ||
      domainSeparator({ network, asset, domain: each }) === separator.toLowerCase(),
  );
}
