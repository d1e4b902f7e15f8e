import type { AdvertisedWay, Advertisement } from "./wire.ts";

/**
 * Both versions of x402 in one entry of `protocols`; the draft knows no offers of x402. Directories
 * read its name alone. The ways to pay are for buyers that choose a network before they ask. A
 * recipient is in the 402 alone.
 */
export function advertiseX402(ways: readonly AdvertisedWay[]): Advertisement {
  const versions = [...new Set(ways.flatMap((way) => [...way.versions]))].sort();
  if (versions.length === 0) return { protocols: [], offers: [] };
  return { protocols: [{ x402: { versions, accepts: ways.map(acceptOf) } }], offers: [] };
}

function acceptOf({ scheme, network, price }: AdvertisedWay): object {
  return {
    scheme,
    network,
    ...(typeof price === "function" ? {} : { amount: price.amount, asset: price.asset }),
  };
}
