import { type Address, isSameAddress } from "./address.ts";
import { type Asset, plasma, plasmaUsdt0, stable, stableUsdt0 } from "./known-asset.ts";
import type { Network } from "./network.ts";

function usdc(address: Address, name = "USD Coin"): Asset {
  return { address, name, version: "2", decimals: 6 };
}

/** Tokens with EIP-3009 transfers, with the domains that the reference implementation lists. */
const tokens: ReadonlyMap<Network, Asset> = new Map([
  [plasma, plasmaUsdt0],
  [stable, stableUsdt0],
  ["eip155:1", usdc("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48")],
  ["eip155:8453", usdc("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")],
  ["eip155:84532", usdc("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC")],
  ["eip155:43114", usdc("0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E")],
]);

/** Decimals and domain of a token by its address, where we know them: then no node has to be believed. */
export function findKnownToken(network: Network, address: Address): Asset | undefined {
  const token = tokens.get(network);
  return token && isSameAddress(token.address, address) ? token : undefined;
}
