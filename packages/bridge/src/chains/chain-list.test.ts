import { isAddress } from "viem";
import { describe, expect, it } from "vitest";
import { type BridgeChain, bridgeChainSchema, createBridge, usdt0Chains } from "../index.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";

const account = "0x90F79bf6EB2c4f870365E785982E1f101E93b906";
const rpcUrl = "http://127.0.0.1:1/secret-key";
const further: BridgeChain = {
  key: "hedera",
  name: "Hedera",
  type: "evm",
  chainId: 295,
  eid: 30316,
  nativeToken: "HBAR",
  contracts: { oft: "0xe3119e23fC2371d1E6b01775ba312035425A53d6" },
};

function chainsWith(chains: readonly BridgeChain[]) {
  return createBridge({ account, rpcUrl, bridgeMaxFee: 0n, chains }).supportedChains();
}

describe("the chain table", () => {
  it("has the 25 confirmed chains, three of them outside the EVM", () => {
    expect(usdt0Chains.map(({ key }) => key)).toEqual(
      "ethereum arbitrum berachain conflux corn flare hyperevm ink mantle megaeth monad morph optimism plasma polygon rootstock sei stable unichain xlayer avalanche celo solana ton tron".split(
        " ",
      ),
    );
    const foreign = usdt0Chains.filter(({ type }) => type !== "evm");
    expect(foreign.map(({ key, eid }) => [key, eid])).toEqual([
      ["solana", 30168],
      ["ton", 30343],
      ["tron", 30420],
    ]);
  });

  it("satisfies the schema for each, with addresses that fit their checksums", () => {
    for (const chain of usdt0Chains) {
      expect(bridgeChainSchema.safeParse(chain)).toMatchObject({ success: true });
      if (chain.type !== "evm") continue;
      const addresses = [...Object.values(chain.contracts), ...(chain.token ? [chain.token] : [])];
      expect(addresses.length).toBeGreaterThan(0);
      for (const address of addresses) expect(isAddress(address ?? "")).toBe(true);
    }
  });

  it("names each chain once", () => {
    for (const field of ["key", "eid", "name"] as const) {
      expect(new Set(usdt0Chains.map((chain) => chain[field])).size).toBe(25);
    }
  });
});

describe("further chains", () => {
  it("are added", () => {
    expect(chainsWith([further])).toHaveLength(26);
  });

  it("replace one with the same key", () => {
    const plasma = { ...further, key: "plasma", eid: 30383, chainId: 9745 };
    const chains = chainsWith([plasma]);
    expect(chains).toHaveLength(25);
    expect(chains.find(({ key }) => key === "plasma")).toEqual(plasma);
  });

  it.each([
    [
      "an endpoint id that is taken",
      { ...further, eid: 30383 },
      "two chains have the endpoint id 30383",
    ],
    [
      "a chain id that is taken",
      { ...further, chainId: 9745 },
      "two chains have the chain id 9745",
    ],
    [
      "an address that was mistyped",
      { ...further, contracts: { oft: "0xE3119e23fC2371d1E6b01775ba312035425A53d6" as const } },
      "chains[0]: contracts: oft: the address does not fit its checksum",
    ],
  ])("are refused for %s", async (_, chain, reason) => {
    const creation = Promise.resolve().then(() => chainsWith([chain]));
    const error = await expectBridgeError(creation, "invalid_configuration");
    expect(error.message).toContain(reason);
  });
});

describe("createBridge", () => {
  it("reports all faults at once, without URLs", async () => {
    const creation = Promise.resolve().then(() =>
      createBridge({
        account: "0x90f79bf6EB2c4f870365E785982E1f101E93b906",
        rpcUrl: ["ftp://127.0.0.1/secret-key"],
        bridgeMaxFee: -1n,
        maxTotalFee: -1n,
        receiptTimeoutMs: 0,
        targetRpcUrls: { tron: rpcUrl, nowhere: rpcUrl, plasma: [] },
      }),
    );
    const error = await expectBridgeError(creation, "invalid_configuration");
    expect(error.message.split("; ")).toHaveLength(8);
  });
});
