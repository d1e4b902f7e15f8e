import { createRpcPool } from "@coinslot/chain";
import { createPublicClient, fallback, type Hash, type Hex, http } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import { usdt, usdt0, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { type RpcProxy, type RpcProxyCall, startRpcProxy } from "../testing/rpc-proxy.ts";
import { adapter, isBroadcast, proxies } from "../testing/send-scene.ts";
import { broadcastThroughPool } from "./broadcast.ts";

const world = useBridgeWorld();

afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

async function startProxy(): Promise<RpcProxy> {
  const proxy = await startRpcProxy(world().ethereum.rpcUrl);
  proxies.push(proxy);
  return proxy;
}

describe("a transfer through an endpoint", () => {
  it("is made once where the endpoint accepts it and loses its answer", async () => {
    const { request, createBridge, countSent, balanceOf, ethereum } = world();
    const proxy = await startProxy();
    let losses = 0;
    proxy.judge((call) => (isBroadcast(call) && losses++ % 2 === 0 ? "lose answer" : "forward"));

    await createBridge({}, { rpcUrl: proxy.url }).bridge(request);

    expect(await countSent()).toBe(2);
    expect(await balanceOf(ethereum, usdt, adapter)).toBe(request.amount);
  });

  it("may be made later where the endpoints refuse it", async () => {
    const { request, createBridge, countSent, approve } = world();
    await approve(request.amount);
    const proxy = await startProxy();
    const error = { code: -32000, message: "txpool is full" };
    proxy.judge((call) => (isBroadcast(call) ? { error } : "forward"));

    const rpcUrl = [proxy.url, proxy.url.replace("127.0.0.1", "localhost")];
    const transfer = createBridge({}, { rpcUrl }).bridge(request);

    const refusal = await expectBridgeError(transfer, "outcome_unclear");
    expect(refusal.message).toContain("txpool is full");
    expect(refusal.moneyMayHaveMoved).toBe(true);
    expect(await countSent()).toBe(1);
  });

  it.each([
    { code: -32002, message: "request timed out" },
    { code: -32603, message: "Internal error" },
    { code: -32000, message: "upstream timeout, try again later" },
  ])(
    "may have been made where the endpoint returns '$message', and its outcome is looked up",
    async (error) => {
      const { request, createBridge, countSent, approve } = world();
      await approve(request.amount);
      const proxy = await startProxy();
      proxy.judge((call) => {
        if (isBroadcast(call)) return { error, isTaken: true };
        // The same URL has a second node without the transaction.
        return call.method === "eth_getTransactionByHash" ? { answer: () => null } : "forward";
      });
      await createBridge({}, { rpcUrl: proxy.url }).bridge(request);
      expect(await countSent()).toBe(2);
    },
  );

  it("may have been made where the endpoint never answers: the hash is returned, and can be tracked", async () => {
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

  it("may have been made where the bridge is closed meanwhile, and is reported so at once", async () => {
    const { request, createBridge, approve, ethereum } = world();
    await approve(request.amount);
    const proxy = await startProxy();
    const bridge = createBridge({}, { rpcUrl: proxy.url });
    proxy.judge((call) => {
      if (isBroadcast(call)) bridge.close();
      return "forward";
    });
    const error = await expectBridgeError(bridge.bridge(request), "outcome_unclear");
    expect(error.moneyMayHaveMoved).toBe(true);
    const { hash } = error;
    if (hash === undefined) throw new Error("It tells no hash");
    await vi.waitFor(() => ethereum.client.getTransactionReceipt({ hash }), 20_000);
  });

  describe("a transfer through one rate limited host only", () => {
    const limit = (call: RpcProxyCall) =>
      isBroadcast(call)
        ? { error: { code: -32005, message: "rate limit exceeded" } }
        : ("forward" as const);

    it("may have been accepted by it", async () => {
      const { ethereum } = world();
      const proxy = await startProxy();
      proxy.judge(limit);
      const pool = createRpcPool({ chainId: ethereum.chainId, rpcUrls: [proxy.url] });
      try {
        expect(await broadcastThroughPool(pool)("0x02")).toMatchObject({ outcome: "limited" });
      } finally {
        pool.close();
      }
    });

    it("is unclear at once, without a wait for a block, and is sent again during tracking", async () => {
      const { ethereum, layerZero, request, createBridge, approve } = world();
      await approve(request.amount);
      const proxy = await startProxy();
      const broadcasts = () => proxy.calls.filter(isBroadcast).length;
      proxy.judge(limit);
      const bridge = createBridge({ receiptTimeoutMs: 3_600_000 }, { rpcUrl: proxy.url });
      let signed: Hex | undefined;
      const transfer = bridge.bridge(request, {
        onProgress(progress) {
          if (progress.state === "sending") signed = progress.transaction;
        },
      });
      const { hash, message, moneyMayHaveMoved } = await expectBridgeError(
        transfer,
        "outcome_unclear",
      );
      expect(message).toContain("rate limit");
      expect(moneyMayHaveMoved).toBe(true);
      if (hash === undefined || signed === undefined) throw new Error("Nothing was signed");

      const before = broadcasts();
      const tracking = bridge.track({
        hash,
        transaction: signed,
        confirmations: 1,
        timeoutMs: 20_000,
        pollIntervalMs: 10,
      });
      await vi.waitFor(() => expect(broadcasts()).toBeGreaterThan(before), 20_000);
      proxy.judge(() => "forward");
      await vi.waitFor(() => ethereum.client.getTransactionReceipt({ hash }), 20_000);
      await layerZero.deliver();
      expect(await tracking).toMatchObject({ state: "delivered" });
    });
  });

  it("continues where one node has it already, and another refuses it by its rate limit", async () => {
    const { request, approve, createBridge, countSent } = world();
    await approve(request.amount);
    const [first, second] = await Promise.all([startProxy(), startProxy()]);
    const known = { code: -32000, message: "already known" };
    first.judge((call) => (isBroadcast(call) ? { error: known, isTaken: true } : "forward"));
    const limit = { code: -32005, message: "rate limit exceeded" };
    second.judge((call) => (isBroadcast(call) ? { error: limit } : "forward"));
    await createBridge({}, { rpcUrl: [first.url, second.url] }).bridge(request);
    expect(await countSent()).toBe(2);
  });

  it("cannot be made while no endpoint answers", async () => {
    const { request, createBridge } = world();
    const proxy = await startProxy();
    proxy.judge(() => "drop");
    const transfer = createBridge({}, { rpcUrl: proxy.url }).bridge(request);
    await expectBridgeError(transfer, "rpc_unavailable");
  });
});

describe("a transfer through the caller's client", () => {
  const already = { error: { code: -32000, message: "already known" } };
  const unheardOf = { answer: () => null };

  it("continues with its hash after a lost answer, at a node that knows it already", async () => {
    const { ethereum, request, createBridge, countSent, approve } = world();
    await approve(request.amount);
    const [first, second] = await Promise.all([startProxy(), startProxy()]);
    first.judge((call) => (isBroadcast(call) ? "lose answer" : "forward"));
    // The other node learns late of the transaction that the first accepted.
    second.judge((call) => {
      if (isBroadcast(call)) return already;
      return call.method === "eth_getTransactionByHash" ? unheardOf : "forward";
    });
    const transport = fallback([http(first.url, { retryCount: 0 }), http(second.url)]);
    const client = createPublicClient({ transport, pollingInterval: 20 });
    const { hash } = await createBridge({}, { client }).bridge(request);
    expect((await ethereum.client.getTransactionReceipt({ hash })).status).toBe("success");
    expect(await countSent()).toBe(2);
  });

  it("is sent once, so that a refusal is final", async () => {
    const { ethereum, request, createBridge, approve } = world();
    await approve(request.amount);
    const proxy = await startProxy();
    const broadcasts = () => proxy.calls.filter(isBroadcast).length;
    const client = createPublicClient({ transport: http(proxy.url), pollingInterval: 20 });
    proxy.judge((call) => (isBroadcast(call) ? "lose answer" : "forward"));
    await createBridge({}, { client }).bridge(request);
    expect(broadcasts()).toBe(1);

    await approve(request.amount);
    const error = { code: -32000, message: "txpool is full" };
    proxy.judge((call) => (isBroadcast(call) ? { error } : "forward"));
    const refused = createBridge({}, { client }).bridge(request);
    // One node alone may have kept it.
    await expectBridgeError(refused, "outcome_unclear");
    expect(await ethereum.client.getTransactionCount({ address: world().buyer })).toBe(3);
  });

  it("is unclear if one of several nodes refuses it, and another may have accepted it", async () => {
    const { request, createBridge, approve } = world();
    await approve(request.amount);
    const [first, second] = await Promise.all([startProxy(), startProxy()]);
    first.judge((call) => (isBroadcast(call) ? "drop" : "forward"));
    const error = { code: -32000, message: "txpool is full" };
    second.judge((call) => (isBroadcast(call) ? { error } : "forward"));
    const transport = fallback([http(first.url), http(second.url)]);
    const client = createPublicClient({ transport, pollingInterval: 20 });
    const transfer = createBridge({ receiptTimeoutMs: 100 }, { client }).bridge(request);
    await expectBridgeError(transfer, "outcome_unclear");
  });
});
