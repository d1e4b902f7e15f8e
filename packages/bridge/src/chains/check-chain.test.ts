import { describe, expect, it } from "vitest";
import { checkChain } from "../index.ts";
import { contractOf, usdt, useBridgeWorld, xaut } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";

const world = useBridgeWorld();

describe("checking a row of the chain table", () => {
  it("reads the token of each contract, and its peers", async () => {
    const { ethereum } = world();
    const { chain, contracts } = await checkChain({ rpcUrl: ethereum.rpcUrl });
    expect(chain.key).toBe("ethereum");
    expect(contracts.map(({ kind, token }) => [kind, token])).toEqual([
      ["oft", usdt],
      ["legacyMesh", usdt],
      ["xautOft", xaut],
    ]);
    // In this miniature, Plasma is the only peer.
    const [oft] = contracts;
    expect(oft?.problems).toHaveLength(18);
    expect(oft?.problems.join()).not.toContain("plasma");
    expect(oft?.problems[0]).toMatch(/^its peer on arbitrum is 0x0{64}, not 0x14E4A1/);
  });

  it("reports a missing contract, and another token", async () => {
    const { plasma } = world();
    const contracts = {
      oft: contractOf("plasma", "oft"),
      xautOft: contractOf("plasma", "xautOft"),
    };
    const token = "0xe7cd86e13AC4309349F30B3435a9d337750fC82D";
    const row = { key: "plasma", name: "Plasma", type: "evm", chainId: 9745, eid: 30383 } as const;
    const check = await checkChain({
      rpcUrl: plasma.rpcUrl,
      chains: [{ ...row, nativeToken: "XPL", contracts, token }],
    });
    const [oft, xautOft] = check.contracts;
    expect(oft?.problems[0]).toMatch(/^its token is 0xB8CE.*, and 0xe7cd.* in the table$/);
    expect(xautOft).toMatchObject({
      token: undefined,
      problems: [expect.stringContaining("no OFT")],
    });
  });

  it("needs an endpoint that answers", async () => {
    const check = checkChain({ rpcUrl: "http://127.0.0.1:1/secret-key" });
    const { message } = await expectBridgeError(check, "rpc_unavailable");
    expect(message).toMatch(/^No RPC endpoint returned its chain id: endpoint 1 of 1/);
  });
});
