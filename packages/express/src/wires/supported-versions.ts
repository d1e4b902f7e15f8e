import type { Network, Supported } from "@coinslot/protocol";

/** Protocol versions that a facilitator serves on a network with the scheme `exact`. */
export type SupportedVersions = (network: Network) => { v1: boolean; v2: boolean };

/** Reads the served versions from the answer of `/supported`. */
export function supportedVersions({ kinds }: Supported): SupportedVersions {
  const served = new Set(
    kinds
      .filter(({ scheme }) => scheme === "exact")
      .map(({ x402Version, network }) => `${x402Version} ${network}`),
  );
  return (network) => ({ v1: served.has(`1 ${network}`), v2: served.has(`2 ${network}`) });
}
