import {
  type Address,
  chainIdOf,
  type Hex,
  type Network,
  type TokenDomain,
} from "@coinslot/protocol";
import { keccak256, stringToHex } from "viem";
import { hexWord, uintWord } from "./word.ts";

/** A token, and the name and version under which its transfers are signed. */
export interface DomainOfToken {
  network: Network;
  asset: Address;
  domain: TokenDomain;
}

const domainTypeHash = keccak256(
  stringToHex("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
);

/** The EIP-712 hash of a token's domain. */
export function domainSeparator({ network, asset, domain }: DomainOfToken): Hex {
  const words = [
    hexWord(domainTypeHash),
    hexWord(keccak256(stringToHex(domain.name))),
    hexWord(keccak256(stringToHex(domain.version))),
    uintWord(chainIdOf(network)),
    hexWord(asset),
  ];
  return keccak256(`0x${words.join("")}`);
}

const maxCache = 1_000;

/** `domainSeparator` with a cache: a facilitator sees few tokens, and each of them often. */
export function createDomainSeparatorCache(): (token: DomainOfToken) => Hex {
  const known = new Map<string, Hex>();
  return function cachedDomainSeparator(token) {
    const { network, asset, domain } = token;
    const key = JSON.stringify([network, asset, domain.name, domain.version]);
    const cached = known.get(key);
    if (cached !== undefined) return cached;
    // Names come from outside: a sender of invented ones must not fill the memory.
    if (known.size >= maxCache) known.clear();
    const separator = domainSeparator(token);
    known.set(key, separator);
    return separator;
  };
}
