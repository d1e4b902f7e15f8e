import type { Hash } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import { contractOf, usdt, usdt0, useBridgeWorld } from "./testing/bridge-world.ts";
import { expectBridgeError } from "./testing/expect-bridge-error.ts";
import { type RpcProxy, type RpcProxyCall, startRpcProxy } from "./testing/rpc-proxy.ts";

const world = useBridgeWorld();
const adapter = contractOf("ethereum", "oft");
const proxies: RpcProxy[] = [];

afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

async function startProxy(): Promise<RpcProxy> {
  const proxy = await startRpcProxy(world().ethereum.rpcUrl);
  proxies.push(proxy);
  return proxy;
}

const isBroadcast = ({ method }: RpcProxyCall) => method === "eth_sendRawTransaction";

describe("a transfer through an endpoint", () => {
  it("that takes it and loses its answer is made once", async () => {
    const { request, createBridge, countSent, balanceOf, ethereum } = world();
    const proxy = await startProxy();
    let losses = 0;
    proxy.judge((call) => (isBroadcast(call) && losses++ % 2 === 0 ? "lose answer" : "forward"));

    await createBridge({}, { rpcUrl: proxy.url }).bridge(request);

    expect(await countSent()).toBe(2);
    expect(await balanceOf(ethereum, usdt, adapter)).toBe(request.amount);
  });

  it("that refuses it has not been made", async () => {
    const { request, createBridge, countSent, approve } = world();
    await approve(request.amount);
    const proxy = await startProxy();
    const error = { code: -32000, message: "txpool is full" };
    proxy.judge((call) => (isBroadcast(call) ? { error } : "forward"));

    const transfer = createBridge({}, { rpcUrl: proxy.url }).bridge(request);

    const refusal = await expectBridgeError(transfer, "rejected_by_node");
    expect(refusal.message).toContain("txpool is full");
    expect(refusal.moneyMayHaveMoved).toBe(false);
    expect(await countSent()).toBe(1);
  });

  it("that never answers may have been made: the hash is told, and can be tracked", async () => {
    const { plasma, layerZero, request, createBridge, approve, balanceOf, buyer } = world();
    await approve(request.amount);
    const proxy = await startProxy();
    proxy.judge((call) =>
      isBroadcast(call) || call.method === "eth_getTransactionReceipt" ? "lose answer" : "forward",
    );
    let signed: Hash | undefined;

    const transfer = createBridge({ receiptTimeoutMs: 100 }, { rpcUrl: proxy.url }).bridge(
      request,
      {
        onProgress({ hash }) {
          signed = hash;
        },
      },
    );

    const error = await expectBridgeError(transfer, "outcome_unclear");
    expect(error.moneyMayHaveMoved).toBe(true);
    expect(error.hash).toBe(signed);
    await layerZero.deliver();
    if (error.hash === undefined) return;
    await createBridge().track({ hash: error.hash, confirmations: 1 });
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(request.amount);
  });

  it("cannot be made while no endpoint answers", async () => {
    const { request, createBridge } = world();
    const proxy = await startProxy();
    proxy.judge(() => "drop");
    const transfer = createBridge({}, { rpcUrl: proxy.url }).bridge(request);
    await expectBridgeError(transfer, "rpc_unavailable");
  });
});

describe("a transfer that is sent", () => {
  it("and not mined in time may be mined yet", async () => {
    const { ethereum, layerZero, request, createBridge, approve } = world();
    await approve(request.amount);
    await ethereum.setAutomine(false);
    const error = await expectBridgeError(
      createBridge({ receiptTimeoutMs: 100 }).bridge(request),
      "outcome_unclear",
    );
    await ethereum.setAutomine(true);
    await ethereum.mine();
    expect(await layerZero.deliver()).toHaveLength(1);
    if (error.hash === undefined) return;
    const { amountReceived } = await createBridge().track({ hash: error.hash, confirmations: 1 });
    expect(amountReceived).toBe(request.amount);
  });

  it("and reverts has moved nothing", async () => {
    const { ethereum, request, createBridge, approve, balanceOf } = world();
    await approve(request.amount);
    await ethereum.setAutomine(false);

    const transfer = createBridge().bridge(request);
    await vi.waitFor(async () => {
      expect((await ethereum.client.getTxpoolStatus()).pending).toBe(1);
    });
    const code = await ethereum.client.getCode({ address: adapter });
    await ethereum.client.setCode({ address: adapter, bytecode: "0x5f5ffd" });
    await ethereum.mine();

    const error = await expectBridgeError(transfer, "send_reverted");
    expect(error.moneyMayHaveMoved).toBe(false);
    expect(await balanceOf(ethereum, usdt, adapter)).toBe(0n);
    await expectBridgeError(createBridge().track({ hash: error.hash ?? "0x" }), "send_reverted");
    await ethereum.client.setCode({ address: adapter, bytecode: code ?? "0x" });
    await ethereum.setAutomine(true);
  });

  it("and succeeds without a word may have moved tokens", async () => {
    const { ethereum, request, createBridge, approve } = world();
    await approve(request.amount);
    await ethereum.setAutomine(false);

    const transfer = createBridge().bridge(request);
    await vi.waitFor(async () => {
      expect((await ethereum.client.getTxpoolStatus()).pending).toBe(1);
    });
    const code = await ethereum.client.getCode({ address: adapter });
    await ethereum.client.setCode({ address: adapter, bytecode: "0x00" });
    await ethereum.mine();

    const error = await expectBridgeError(transfer, "outcome_unclear");
    expect(error.moneyMayHaveMoved).toBe(true);
    expect(error.hash).toBeDefined();
    await ethereum.client.setCode({ address: adapter, bytecode: code ?? "0x" });
    await ethereum.setAutomine(true);
  });

  it("reverts in its approval before any token could move", async () => {
    const { ethereum, request, createBridge } = world();
    await ethereum.setAutomine(false);

    const transfer = createBridge().bridge(request);
    await vi.waitFor(async () => {
      expect((await ethereum.client.getTxpoolStatus()).pending).toBe(1);
    });
    const code = await ethereum.client.getCode({ address: usdt });
    await ethereum.client.setCode({ address: usdt, bytecode: "0x5f5ffd" });
    await ethereum.mine();

    await expectBridgeError(transfer, "approval_reverted");
    await ethereum.client.setCode({ address: usdt, bytecode: code ?? "0x" });
    await ethereum.setAutomine(true);
  });
});
