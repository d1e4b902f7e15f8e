import { formatEther, toHex } from "viem";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import type { Bridge, BridgeQuote, TransferProgress } from "../index.ts";
import { createTopUp } from "../index.ts";
import { nativeFee, usdt, usdt0, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import {
  type RpcProxy,
  type RpcProxyCall,
  startRpcProxy,
  type Verdict,
} from "../testing/rpc-proxy.ts";

const world = useBridgeWorld();
const proxies: RpcProxy[] = [];

beforeEach(async () => {
  // A snapshot's reversal keeps the base fee of the next block.
  await world().ethereum.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1_000_000_000n });
  await world().ethereum.mine();
});
afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

/** A bridge without any configured bound on gas, behind a proxy in front of Ethereum. */
async function startProxied(): Promise<{ proxy: RpcProxy; bridge: Bridge }> {
  const { ethereum, createBridge } = world();
  const proxy = await startRpcProxy(ethereum.rpcUrl);
  proxies.push(proxy);
  const bridge = createBridge({ maxTotalFee: undefined }, { rpcUrl: proxy.url });
  return { proxy, bridge };
}

const block = z.looseObject({ number: z.string() });

/** Multiplies the base fee of a node's answers. */
function dearer(times: bigint): (call: RpcProxyCall) => Verdict {
  const raise = (given: unknown) => toHex(BigInt(z.string().parse(given)) * times);
  return ({ method }) => {
    if (method !== "eth_getBlockByNumber") return "forward";
    const answer = (given: unknown) => {
      const header = block.parse(given);
      return { ...header, baseFeePerGas: raise(header.baseFeePerGas) };
    };
    return { answer };
  };
}

async function spentBy<T>(work: () => Promise<T>): Promise<{ result: T; spent: bigint }> {
  const { ethereum, buyer } = world();
  const before = await ethereum.client.getBalance({ address: buyer });
  const result = await work();
  return { result, spent: before - (await ethereum.client.getBalance({ address: buyer })) };
}

function totalOf({ fee, bridgeFee }: BridgeQuote): bigint {
  return fee + bridgeFee;
}

describe("an agreed quote", () => {
  it("refuses a gas price that a node raises after the agreement, and names both figures", async () => {
    const { request, countSent } = world();
    const { proxy, bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    proxy.judge(dearer(10_000n));
    const { message, moneyMayHaveMoved } = await expectBridgeError(
      bridge.bridge(request, { agreed }),
      "terms_changed",
    );
    expect(message).toContain(
      `at most ${formatEther(totalOf(agreed))} were agreed to. Nothing was sent`,
    );
    expect(message).toMatch(/may cost [0-9.]+ of the native coin in all/);
    expect(moneyMayHaveMoved).toBe(false);
    expect(await countSent()).toBe(0);
  });

  it("refuses a gas price that a node raises after the approval", async () => {
    const { request, countSent } = world();
    const { proxy, bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    const onProgress = ({ state }: TransferProgress) => {
      if (state === "approved") proxy.judge(dearer(10_000n));
    };
    const { result, spent } = await spentBy(() =>
      expectBridgeError(bridge.bridge(request, { agreed, onProgress }), "terms_changed"),
    );
    expect(result.message).toContain("The approval was sent, and no token has moved");
    expect(spent).toBeLessThanOrEqual(totalOf(agreed));
    expect(await countSent()).toBe(1);
  });

  it("counts an approval at its signed maximum, whatever cost a node reports", async () => {
    const { request, countSent } = world();
    const { proxy, bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    const receipt = z.looseObject({}).nullable();
    let isApproved = false;
    proxy.judge(({ method, params }) => {
      if (method === "eth_getTransactionReceipt") {
        const answer = (given: unknown) => {
          const parsed = receipt.parse(given);
          return parsed && { ...parsed, gasUsed: "0x0", effectiveGasPrice: "0x0" };
        };
        return { answer };
      }
      // A rehearsal has a third parameter. The approval's gas leaves no room for the send.
      const isApproval = method === "eth_estimateGas" && params.length < 3 && !isApproved;
      if (!isApproval) return "forward";
      return { answer: (given) => toHex(BigInt(z.string().parse(given)) * 3n) };
    });
    const onProgress = ({ state }: TransferProgress) => {
      if (state === "approved") isApproved = true;
    };
    const { spent } = await spentBy(() =>
      expectBridgeError(bridge.bridge(request, { agreed, onProgress }), "terms_changed"),
    );
    expect(spent).toBeLessThan(totalOf(agreed));
    expect(await countSent()).toBe(1);
  });

  it("refuses a gas limit of the approval that would use up the agreed amount", async () => {
    const { request, countSent } = world();
    const { proxy, bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    proxy.judge(({ method, params }) =>
      method === "eth_estimateGas" && params.length < 3
        ? { answer: () => toHex(30_000_000n) }
        : "forward",
    );
    await expectBridgeError(bridge.bridge(request, { agreed }), "terms_changed");
    expect(await countSent()).toBe(0);
  });

  it("refuses a raised message fee, and more gas of the send", async () => {
    const { ethereum, layerZero, request, approve, countSent } = world();
    await approve(request.amount);
    const { proxy, bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    proxy.judge(({ method }) =>
      method === "eth_estimateGas" ? { answer: () => toHex(30_000_000n) } : "forward",
    );
    await expectBridgeError(bridge.bridge(request, { agreed }), "terms_changed");
    proxy.judge(() => "forward");
    const { fee } = agreed;
    const dear = world().createBridge({ maxTotalFee: undefined, bridgeMaxFee: nativeFee * 10n });
    await layerZero.setNativeFee(ethereum, nativeFee + fee);
    await expectBridgeError(dear.bridge(request, { agreed }), "terms_changed");
    expect(await countSent()).toBe(1);
  });

  it("refuses a raised message fee where a node reports a gas price of zero", async () => {
    const { ethereum, layerZero, request, approve, countSent } = world();
    await approve(request.amount);
    const { proxy, bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    proxy.judge(({ method }) =>
      method === "eth_estimateGas" ? { answer: () => "0x0" } : "forward",
    );
    await layerZero.setNativeFee(ethereum, totalOf(agreed) + 1n);
    await expectBridgeError(bridge.bridge(request, { agreed }), "terms_changed");
    expect(await countSent()).toBe(1);
  });

  it("refuses more tokens, and another contract", async () => {
    const { request, countSent } = world();
    const { bridge } = await startProxied();
    const agreed = await bridge.quoteBridge({ ...request, amount: 4_000_000n });
    await expectBridgeError(bridge.bridge(request, { agreed }), "terms_changed");
    const quote = await bridge.quoteBridge(request);
    const elsewhere = { ...quote, contract: usdt };
    await expectBridgeError(bridge.bridge(request, { agreed: elsewhere }), "terms_changed");
    expect(await countSent()).toBe(0);
  });

  it("refuses another recipient, token or chain than agreed", async () => {
    const { request, approve, countSent, ethereum, createBridge } = world();
    await approve(request.amount);
    const { bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    const { deployer } = ethereum.accounts;
    for (const other of [
      { recipient: deployer.address },
      { token: usdt0 },
      { targetChain: "stable" },
      { sourceChain: "arbitrum" },
    ]) {
      const terms = { ...agreed, ...other };
      const error = await expectBridgeError(
        bridge.bridge(request, { agreed: terms }),
        "terms_changed",
      );
      expect(error.message).toContain("Nothing was sent");
    }
    expect(await countSent()).toBe(1);
    // The same address in other letters is the same recipient.
    const lower = { ...agreed, recipient: agreed.recipient.toLowerCase() };
    await createBridge().bridge(request, { agreed: lower });
    expect(await countSent()).toBe(2);
  });

  it("continues when gas has become a little dearer, and pays no more than agreed", async () => {
    const { ethereum, request } = world();
    const { client } = ethereum;
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 100_000_000_000n });
    await ethereum.mine();
    const { bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 120_000_000_000n });
    await ethereum.mine();
    const now = await bridge.quoteBridge(request);
    expect(totalOf(now)).toBeGreaterThan(totalOf(agreed));
    const { result, spent } = await spentBy(() => bridge.bridge(request, { agreed }));
    expect(spent).toBe(result.fee + result.bridgeFee);
    expect(spent).toBeLessThanOrEqual(totalOf(agreed));
  });

  it("refuses a gas price above all of the agreed room", async () => {
    const { ethereum, request, countSent } = world();
    const { client } = ethereum;
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 100_000_000_000n });
    await ethereum.mine();
    const { bridge } = await startProxied();
    const agreed = await bridge.quoteBridge(request);
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 200_000_000_000n });
    await ethereum.mine();
    await expectBridgeError(bridge.bridge(request, { agreed }), "terms_changed");
    expect(await countSent()).toBe(0);
  });

  it("is required: a call without quote or maximum is refused", async () => {
    const { request, countSent } = world();
    const { bridge } = await startProxied();
    await expectBridgeError(bridge.bridge(request), "invalid_configuration");
    expect(await countSent()).toBe(0);
  });
});

describe("the agreement to a top-up", () => {
  const need = { network: "eip155:9745", asset: usdt0, amount: 1_000_000n, balance: 0n };

  function topUp(bridge: Bridge, ask: (quote: BridgeQuote) => boolean) {
    const { buyer, layerZero } = world();
    const bring = createTopUp({
      bridge,
      token: usdt,
      ask: ({ quote }) => ask(quote),
      pollIntervalMs: 10,
      async onProgress({ state }) {
        if (state === "sent") await layerZero.deliver();
      },
    });
    return bring({ payer: buyer, needs: [need], signal: undefined });
  }

  it("is asked for again with the new figures when it has become dearer", async () => {
    const { proxy, bridge } = await startProxied();
    const asked: bigint[] = [];
    const { result, spent } = await spentBy(() =>
      topUp(bridge, (quote) => {
        asked.push(totalOf(quote));
        if (asked.length === 1) proxy.judge(dearer(3n));
        return true;
      }),
    );
    expect(result).toBe(true);
    expect(asked).toHaveLength(2);
    expect(asked[1]).toBeGreaterThan(asked[0] ?? 0n);
    expect(spent).toBeLessThanOrEqual(asked[1] ?? 0n);
  });

  it("is refused by a no to the new figures, and nothing is sent", async () => {
    const { proxy, bridge } = await startProxied();
    let asked = 0;
    const isThere = await topUp(bridge, () => {
      asked += 1;
      proxy.judge(dearer(3n));
      return asked === 1;
    });
    expect(isThere).toBe(false);
    expect(asked).toBe(2);
    expect(await world().countSent()).toBe(0);
  });

  it("is asked for three times at most while a node names ever higher prices", async () => {
    const { proxy, bridge } = await startProxied();
    let asked = 0;
    const running = topUp(bridge, () => {
      asked += 1;
      proxy.judge(dearer(10n ** BigInt(asked)));
      return true;
    });
    await expectBridgeError(running, "terms_changed");
    expect(asked).toBe(3);
    expect(await world().countSent()).toBe(0);
  });
});
