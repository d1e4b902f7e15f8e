import type { Address } from "./address.ts";
import type { Network } from "./network.ts";

/** A token that can be paid with, and the EIP-712 domain under which its transfers are signed. */
export interface Asset {
  address: Address;
  /** EIP-712 domain name of the token contract. */
  name: string;
  /** EIP-712 domain version of the token contract. */
  version: string;
  decimals: number;
}

/** USDT0 on Plasma. */
export const plasmaUsdt0: Asset = {
  address: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  name: "USDT0",
  version: "1",
  decimals: 6,
};

/** USDT0 on Stable, where it is the native coin as well. */
export const stableUsdt0: Asset = {
  address: "0x779Ded0c9e1022225f8E0630b35a9b54bE713736",
  name: "USDT0",
  version: "1",
  decimals: 6,
};

/** Plasma, a chain made for stablecoin transfers. */
export const plasma = "eip155:9745" as const satisfies Network;

/** Stable, a chain made for stablecoin transfers. */
export const stable = "eip155:988" as const satisfies Network;

const knownAssets = new Map<Network, Asset>([
  [plasma, plasmaUsdt0],
  [stable, stableUsdt0],
]);

/** The token in which a price such as `"$0.001"` is meant on a network, where we know one. */
export function knownAsset(network: Network): Asset | undefined {
  return knownAssets.get(network);
}
