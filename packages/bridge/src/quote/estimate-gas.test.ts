import { createPublicClient, http, numberToHex } from "viem";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BridgeQuote, TransferProgress } from "../index.ts";
import { contractOf, nativeFee, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import {
  type RpcProxy,
  type RpcProxyCall,
  startRpcProxy,
  type Verdict,
} from "../testing/rpc-proxy.ts";
import { approvalGasBound, sendGasBound } from "./estimate-gas.ts";
import { maxPerGas, readGasPrice } from "./gas-price.ts";

const world = useBridgeWorld();
const adapter = contractOf("ethereum", "oft");

/** Returns whether a call has a state override. */
const overrides = ({ method, params }: RpcProxyCall) =>
  method === "eth_estimateGas" && params.length > 2;

let proxy: RpcProxy;

beforeEach(async () => {
  proxy = await startRpcProxy(world().ethereum.rpcUrl);
});
afterEach(() => proxy.close());

function quote(): Promise<BridgeQuote> {
  const { createBridge, request } = world();
  return createBridge({}, { rpcUrl: proxy.url }).quoteBridge(request);
}

describe("a quote without an allowance", () => {
  it("covers the approval and the send", async () => {
    const { ethereum, request, createBridge } = world();
    const { fee, feeBasis } = await quote();
    expect(feeBasis).toBe("estimate");
    expect(proxy.calls.filter(overrides)).toHaveLength(1);
    const spent = await createBridge().bridge(request);
    expect(spent.fee).toBeLessThan(fee);
    // Twice as much would be no quote.
    expect(spent.fee).toBeGreaterThan(fee / 2n);
    expect(await ethereum.client.getCode({ address: world().buyer })).toBeUndefined();
  });

  it.each([
    {
      node: "refuses to pretend",
      judge: (): Verdict => ({ error: { code: -32602, message: "too many arguments" } }),
    },
    {
      node: "ignores what it should pretend",
      judge: ({ params }: RpcProxyCall): Verdict => ({ params: params.slice(0, 2) }),
    },
  ])("uses the bound where a node $node", async ({ judge }) => {
    proxy.judge((call) => (overrides(call) ? judge(call) : "forward"));
    const bounded = await quote();
    expect(bounded.feeBasis).toBe("bound");
    proxy.judge(() => "forward");
    const estimated = await quote();
    expect(bounded.fee).toBeGreaterThan(estimated.fee);
    expect(bounded.bridgeFee).toBe(nativeFee);
  });

  it("reports the send's revert reason", async () => {
    const { ethereum, configure } = world();
    await configure(ethereum, adapter, { functionName: "setPaused", args: [true] });
    const error = await expectBridgeError(quote(), "refused_by_contract");
    expect(error.message).toContain("EnforcedPause()");
  });

  it("fails with an outage if the node does not answer", async () => {
    proxy.judge((call) => (overrides(call) ? "drop" : "forward"));
    await expectBridgeError(quote(), "rpc_unavailable");
  });
});

describe("a gas quote", () => {
  it("needs no tokens and no native balance", async () => {
    const { createBridge, request } = world();
    const bridge = createBridge({ account: "0x000000000000000000000000000000000000c01f" });
    const poor = await bridge.quoteBridge(request);
    expect(poor).toMatchObject({ feeBasis: "bound", bridgeFee: nativeFee });
    // An approval is missing too.
    const client = createPublicClient({ transport: http(world().ethereum.rpcUrl) });
    const price = maxPerGas((await readGasPrice(client, 1)).gasPrice);
    expect(poor.fee).toBe((sendGasBound + approvalGasBound) * price);
  });

  it("is twice the transfer's later gas as a bound", async () => {
    const { ethereum, createBridge, request } = world();
    const gas: bigint[] = [];
    const onProgress = async ({ state, hash }: TransferProgress) => {
      if (state !== "approved" && state !== "sent") return;
      gas.push((await ethereum.client.getTransactionReceipt({ hash })).gasUsed);
    };
    await createBridge().bridge(request, { onProgress });
    const [approval = 0n, send = 0n] = gas;
    expect(approval).toBeGreaterThan(0n);
    expect(approvalGasBound).toBeGreaterThan(2n * approval);
    expect(sendGasBound).toBeGreaterThan(2n * send);
  });

  it("is a higher bound where a chain charges more for an empty transaction", async () => {
    const { createBridge, request } = world();
    const account = "0x000000000000000000000000000000000000c01f";
    const quoteOf = () => createBridge({ account }, { rpcUrl: proxy.url }).quoteBridge(request);
    const plain = await quoteOf();
    // As on MegaETH.
    proxy.judge(({ method }) =>
      method === "eth_estimateGas" ? { answer: () => numberToHex(60_000n) } : "forward",
    );
    const { fee, feeBasis } = await quoteOf();
    expect(feeBasis).toBe("bound");
    expect((fee * 100n) / plain.fee).toBe(285n);
  });

  it("simulates no allowance where one exists", async () => {
    const { approve, request } = world();
    await approve(request.amount);
    expect((await quote()).feeBasis).toBe("estimate");
    expect(proxy.calls.filter(overrides)).toHaveLength(0);
  });
});
