import type { RpcRequester } from "@coinslot/chain";
import type { Address } from "@coinslot/protocol";
import { readTokenFacts, type TokenFacts } from "./token-facts.ts";

const keptMs = 60_000;
const maxKept = 1_000;

/**
 * `readTokenFacts` with a cache of a minute, so that many bad payments do not become many requests.
 * Concurrent callers share one request. A failure is not kept.
 */
export function createTokenFactsCache(options: {
  rpc: RpcRequester;
  /** Unix milliseconds. */
  now: () => number;
}): (asset: Address) => Promise<TokenFacts> {
  const { rpc, now } = options;
  const known = new Map<Address, { facts: Promise<TokenFacts>; askedAtMs: number }>();
  return function cachedTokenFacts(asset) {
    const kept = known.get(asset);
    if (kept !== undefined && now() - kept.askedAtMs < keptMs) return kept.facts;
    if (known.size >= maxKept) known.clear();
    const facts = readTokenFacts(rpc, asset);
    known.set(asset, { facts, askedAtMs: now() });
    facts.catch(() => known.delete(asset));
    return facts;
  };
}
