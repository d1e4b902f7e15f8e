import { type Devnet, startDevnet, startLayerZero, testOft } from "@coinslot/devnet";
import { encodeFunctionData, pad } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBridge } from "../index.ts";
import { contractOf, nativeFee } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { startRpcProxy } from "../testing/rpc-proxy.ts";

let stable: Devnet;

beforeAll(async () => {
  stable = await startDevnet({ chainId: 988 });
  const oft = contractOf("stable", "oft");
  const chains = [{ devnet: stable, eid: 30396 }];
  const layerZero = await startLayerZero({ nativeFee, chains });
  await layerZero.connect([{ devnet: stable, oft, token: stable.token, locks: false }]);
  const { abi } = testOft;
  const args = [30383, pad(contractOf("plasma", "oft"))] as const;
  await stable.send({
    to: oft,
    data: encodeFunctionData({ abi, functionName: "setPeer", args }),
  });
  await stable.mint({ to: stable.accounts.buyer.address, amount: 5_000_000n });
});
afterAll(() => stable.stop());

describe("a transfer from Stable, where USDT0 is the native coin as well,", () => {
  it("cannot pay its fees with the amount to send", async () => {
    const { buyer } = stable.accounts;
    const bridge = createBridge({
      account: buyer,
      rpcUrl: stable.rpcUrl,
      bridgeMaxFee: nativeFee,
      maxTotalFee: 10n ** 18n,
    });
    const amount = 5_000_000n;
    const request = {
      targetChain: "plasma",
      recipient: buyer.address,
      token: stable.token,
      amount,
    };
    const { fee, bridgeFee } = await bridge.quoteBridge(request);
    const { setBalance } = stable.client;
    // 5 USDT0 in 18 decimals, and the maximum fees less one unit.
    const needed = 5_000_000_000_000_000_000n + 2n * fee + bridgeFee;
    await setBalance({ address: buyer.address, value: needed - 2n * fee - 1n });
    await expectBridgeError(bridge.bridge(request), "insufficient_native_balance");

    await setBalance({ address: buyer.address, value: needed });
    expect((await bridge.bridge(request)).amountSent).toBe(amount);
    bridge.close();
  });

  it("can be quoted for the whole balance, and is not simulated unchanged", async () => {
    const { buyer } = stable.accounts;
    await stable.mint({ to: buyer.address, amount: 5_000_000n });
    await stable.client.setBalance({ address: buyer.address, value: 5_000_000_000_000_000_000n });
    const proxy = await startRpcProxy(stable.rpcUrl);
    // As on the chain: LayerZero's fee leaves first, and the rest lacks some tokens.
    proxy.judge(({ method, params: { length } }) =>
      method === "eth_estimateGas" && length < 3
        ? { error: { code: 3, message: "execution reverted", data: "0x" } }
        : "forward",
    );
    const bridge = createBridge({
      account: buyer,
      rpcUrl: proxy.url,
      bridgeMaxFee: nativeFee,
      maxTotalFee: 10n ** 18n,
    });
    try {
      const request = {
        targetChain: "plasma",
        recipient: buyer.address,
        token: stable.token,
        amount: 5_000_000n,
      };
      expect(await bridge.quoteBridge(request)).toMatchObject({ bridgeFee: nativeFee });
      await expectBridgeError(bridge.bridge(request), "insufficient_native_balance");
    } finally {
      bridge.close();
      await proxy.close();
    }
  });
});
