import type { Network, Supported } from "@coinslot/protocol";

/** Version of x402 in which a facilitator takes payments. */
export type ServedVersion = 1 | 2;

/** Versions that a facilitator serves on a network with the scheme `exact`. */
export type ServedVersions = (network: Network) => ReadonlySet<ServedVersion>;

const none: ReadonlySet<ServedVersion> = new Set();

/** Reads the served versions from the answer of `/supported`. */
export function servedVersions({ kinds }: Supported): ServedVersions {
  const served = new Map<string, Set<ServedVersion>>();
  for (const { scheme, network, x402Version } of kinds) {
    if (scheme !== "exact" || (x402Version !== 1 && x402Version !== 2)) continue;
    served.set(network, (served.get(network) ?? new Set()).add(x402Version));
  }
  return (network) => served.get(network) ?? none;
}
