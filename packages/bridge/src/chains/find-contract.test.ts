import { type Devnet, startDevnet, testOft, testOftAdapter } from "@coinslot/devnet";
import { type Address, encodeDeployData, encodeFunctionData, pad } from "viem";
import { describe, expect, it } from "vitest";
import { contractOf, usdt, useBridgeWorld, xaut } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";

const world = useBridgeWorld();
const eids = { celo: 30125, tron: 30420, ton: 30343, solana: 30168, avalanche: 30106 } as const;

async function setPeer(devnet: Devnet, oft: Address, eid: number): Promise<void> {
  const { abi } = testOft;
  const data = encodeFunctionData({ abi, functionName: "setPeer", args: [eid, pad("0x01")] });
  await devnet.send({ to: oft, data });
}

describe("the sending contract", () => {
  it.each([
    { token: usdt, target: "celo", kind: "legacyMesh" },
    { token: xaut, target: "celo", kind: "xautOft" },
    { token: xaut, target: "avalanche", kind: "xautOft" },
  ] as const)("is the $kind of Ethereum to reach $target", async ({ token, target, kind }) => {
    const { ethereum, request, createBridge } = world();
    const contract = contractOf("ethereum", kind);
    await setPeer(ethereum, contract, eids[target]);
    const quote = await createBridge().quoteBridge({ ...request, token, targetChain: target });
    expect(quote.contract).toBe(contract);
  });

  it.each([
    ["solana", "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"],
    ["ton", "UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA"],
    ["tron", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"],
  ] as const)(
    "is the legacy mesh of Ethereum to reach %s, although the other has the same token",
    async (targetChain, recipient) => {
      const { ethereum, request, createBridge } = world();
      const contract = contractOf("ethereum", "legacyMesh");
      await setPeer(ethereum, contract, eids[targetChain]);
      const quote = await createBridge().quoteBridge({ ...request, targetChain, recipient });
      expect(quote.contract).toBe(contract);
      // Gold is not listed there.
      const gold = { ...request, targetChain, recipient, token: xaut };
      await expectBridgeError(createBridge().quoteBridge(gold), "no_route");
    },
  );

  it("does not exist for a gold-only route, or an unknown target", async () => {
    const { request, createBridge } = world();
    for (const targetChain of ["avalanche", "arbitrum"]) {
      const quote = createBridge().quoteBridge({ ...request, targetChain });
      await expectBridgeError(quote, "no_route");
    }
  });

  it("does not exist from Celo to Plasma, which no mesh joins", async () => {
    const { layerZero, request, createBridge } = world();
    const celo = await startDevnet({ chainId: 42220 });
    try {
      const args = [layerZero.endpoint, celo.token] as const;
      for (const kind of ["legacyMesh", "xautOft"] as const) {
        const creationCode = encodeDeployData({ ...testOftAdapter, args });
        await celo.place({ address: contractOf("celo", kind), creationCode });
      }
      const bridge = createBridge({}, { rpcUrl: celo.rpcUrl });
      // Guards against a wrong table: gold's contract would take this token, and has no peer on
      // Plasma.
      const quote = bridge.quoteBridge({ ...request, token: celo.token });
      await expectBridgeError(quote, "no_route");
    } finally {
      await celo.stop();
    }
  });
});

describe("the list of supported tokens", () => {
  it("has those of the source chain's contracts, each with its targets", async () => {
    const tokens = await world().createBridge().supportedTokens();
    expect(tokens).toMatchObject([
      { kind: "oft", address: usdt, symbol: "USDT", decimals: 6 },
      { kind: "legacyMesh", address: usdt, symbol: "USDT", decimals: 6 },
      { kind: "xautOft", address: xaut, decimals: 6 },
    ]);
    expect(tokens.map(({ targetChains }) => targetChains.length)).toEqual([19, 5, 9]);
    expect(tokens[1]?.targetChains).toEqual(["arbitrum", "celo", "solana", "ton", "tron"]);
  });
});
