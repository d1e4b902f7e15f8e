import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import { describe, expect, test } from "vitest";
import { EvmNetworkToChainId } from "x402/types";
import { knownAsset, plasma, plasmaUsdt0, stable, stableUsdt0 } from "./known-chains.ts";
import {
  caip2Of,
  chainIdOf,
  isNetwork,
  legacyNetworkName,
  networkOf,
  parseNetwork,
} from "./network.ts";

describe("a network", () => {
  test.each(["eip155:1", "eip155:9745", "eip155:9007199254740991"])("may be %s", (text) => {
    expect(isNetwork(text)).toBe(true);
    expect(parseNetwork(text)).toBe(text);
  });

  test.each([
    "",
    "eip155:",
    "eip155:0",
    "eip155:01",
    "eip155:-1",
    "eip155:1e3",
    "eip155:0x1",
    "eip155:1 ",
    "eip155:1\n",
    "EIP155:1",
    "eip155:*",
    "eip155:9007199254740992",
    "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    "plasma",
    "__proto__",
    "constructor",
  ])("may not be %j", (text) => {
    expect(isNetwork(text)).toBe(false);
    expect(parseNetwork(text)).toBeUndefined();
  });

  test("converts to a chain id and back", () => {
    expect(networkOf(9745)).toBe(plasma);
    expect(chainIdOf(stable)).toBe(988);
  });
});

describe("network names from before CAIP-2", () => {
  const namesOfReference = Object.entries(EVM_NETWORK_CHAIN_ID_MAP);

  test("are those of the reference packages, both ways", () => {
    for (const [name, chainId] of namesOfReference) {
      expect(parseNetwork(name), name).toBe(networkOf(chainId));
      expect(legacyNetworkName(networkOf(chainId)), name).toBe(name);
    }
  });

  test("include every EVM name of the legacy packages", () => {
    for (const [name, chainId] of EvmNetworkToChainId) {
      const network = parseNetwork(name);
      if (network !== undefined) expect(chainIdOf(network)).toBe(chainId);
      expect(name.startsWith("solana") || network !== undefined, name).toBe(true);
    }
  });

  test("do not exist for Plasma", () => {
    expect(legacyNetworkName(plasma)).toBeUndefined();
    expect(legacyNetworkName(stable)).toBe("stable");
  });
});

test.each([
  ["base", "eip155:8453"],
  ["eip155:9745", "eip155:9745"],
  ["solana:mainnet", "solana:mainnet"],
  ["moon", "unknown:moon"],
  ["a:b:c", "unknown:a-b-c"],
])("%s is written as %s for other implementations", (name, caip2) => {
  expect(caip2Of(name)).toBe(caip2);
});

test("the recommended chains have a known token", () => {
  expect(knownAsset(plasma)).toBe(plasmaUsdt0);
  expect(knownAsset(stable)).toBe(stableUsdt0);
  expect(knownAsset("eip155:4242")).toBeUndefined();
});
