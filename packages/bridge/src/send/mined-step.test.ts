import type { Address, Hex } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { usdt, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { type RpcProxy, type RpcProxyCall, startRpcProxy } from "../testing/rpc-proxy.ts";
import { adapter, isBroadcast, proxies } from "../testing/send-scene.ts";

const world = useBridgeWorld();
/** PUSH0 PUSH0 REVERT, and STOP. */
const revertingCode = "0x5f5ffd";
const silentCode = "0x00";

afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

async function startProxy(): Promise<RpcProxy> {
  const proxy = await startRpcProxy(world().ethereum.rpcUrl);
  proxies.push(proxy);
  return proxy;
}

async function waitForPending(): Promise<void> {
  const { client } = world().ethereum;
  await vi.waitFor(async () => {
    expect((await client.getTxpoolStatus()).pending).toBe(1);
  }, 20_000);
}

/**
 * Waits for the next transaction, and mines it where a contract has another code.
 *
 * @returns gives the contract its own code again, and the chain its pace
 */
async function mineWith(address: Address, bytecode: Hex): Promise<() => Promise<void>> {
  const { ethereum } = world();
  await waitForPending();
  const code = await ethereum.client.getCode({ address });
  await ethereum.client.setCode({ address, bytecode });
  await ethereum.mine();
  return async () => {
    await ethereum.client.setCode({ address, bytecode: code ?? "0x" });
    await ethereum.setAutomine(true);
  };
}

describe("a transfer through an endpoint", () => {
  describe("a transfer through one rate limited host only", () => {
    const limit = (call: RpcProxyCall) =>
      isBroadcast(call)
        ? { error: { code: -32005, message: "rate limit exceeded" } }
        : ("forward" as const);

    it("has moved nothing while it is an approval", async () => {
      const { request, createBridge } = world();
      const proxy = await startProxy();
      proxy.judge(limit);
      const bridge = createBridge({ receiptTimeoutMs: 3_600_000 }, { rpcUrl: proxy.url });
      const error = await expectBridgeError(bridge.bridge(request), "rejected_by_node");
      expect(error.moneyMayHaveMoved).toBe(false);
      expect(error.message).toContain("no token has moved");
    });
  });
});

describe("an aborted transfer", () => {
  it.each([
    { state: "approving", sent: 1 },
    { state: "approved", sent: 1 },
  ])("sends nothing after its abort in the state '$state'", async ({ state, sent }) => {
    const { ethereum, request, createBridge, countSent, balanceOf } = world();
    const abort = new AbortController();
    const reason = new Error("not any more");
    const states: string[] = [];
    const transfer = createBridge().bridge(request, {
      signal: abort.signal,
      onProgress(progress) {
        states.push(progress.state);
        if (progress.state === state) abort.abort(reason);
      },
    });
    await expect(transfer).rejects.toBe(reason);
    expect(states.at(-1)).toBe(state);
    // The chain mines what was sent after it has answered, and an aborted transfer does not wait.
    await expect.poll(countSent, { timeout: 20_000 }).toBe(sent);
    expect(await balanceOf(ethereum, usdt, adapter)).toBe(0n);
  });

  it("does not wait for its approval to be mined", async () => {
    const { ethereum, request, createBridge } = world();
    await ethereum.setAutomine(false);
    const abort = new AbortController();
    const reason = new Error("not any more");
    const transfer = createBridge().bridge(request, { signal: abort.signal });
    const refusal = expect(transfer).rejects.toBe(reason);
    await waitForPending();
    abort.abort(reason);
    await refusal;
    await ethereum.mine();
    await ethereum.setAutomine(true);
  });

  it("is followed to its end after it was sent", async () => {
    const { request, createBridge, approve } = world();
    await approve(request.amount);
    const abort = new AbortController();
    const { hash } = await createBridge().bridge(request, {
      signal: abort.signal,
      onProgress: ({ state }) => (state === "sending" ? abort.abort() : undefined),
    });
    expect(hash).toMatch(/^0x/);
  });

  it("is never started from the queue", async () => {
    const { request, createBridge, countSent } = world();
    const bridge = createBridge();
    const first = bridge.bridge(request);
    const abort = new AbortController();
    const reason = new Error("not any more");
    const second = bridge.bridge(request, { signal: abort.signal });
    const refusal = expect(second).rejects.toBe(reason);
    abort.abort(reason);
    await refusal;
    await first;
    expect(await countSent()).toBe(2);
  });
});

describe("an approval", () => {
  it("has moved nothing when it is not mined in time, and the error names the next step", async () => {
    const { ethereum, request, createBridge, countSent } = world();
    await ethereum.setAutomine(false);
    const error = await expectBridgeError(
      createBridge({ receiptTimeoutMs: 100 }).bridge(request),
      "approval_not_mined",
    );
    expect(error.moneyMayHaveMoved).toBe(false);
    expect(error.message).toMatch(/no token has moved.*run the same transfer again/i);
    expect(error.message).toContain(error.hash);
    await ethereum.mine();
    await ethereum.setAutomine(true);
    await createBridge().bridge(request);
    expect(await countSent()).toBe(2);
  });
});

describe("a receipt", () => {
  it("is counted with the price offered where it lacks the price paid", async () => {
    const { ethereum, request, createBridge, buyer } = world();
    const proxy = await startProxy();
    const receipt = z.looseObject({});
    const answer = (given: unknown) => ({ ...receipt.parse(given), effectiveGasPrice: null });
    proxy.judge(({ method }) => (method === "eth_getTransactionReceipt" ? { answer } : "forward"));
    const before = await ethereum.client.getBalance({ address: buyer });
    const { fee, bridgeFee } = await createBridge({}, { rpcUrl: proxy.url }).bridge(request);
    const after = await ethereum.client.getBalance({ address: buyer });
    expect(fee + bridgeFee).toBeGreaterThan(before - after);
  });
});

describe("a transfer in flight", () => {
  it("may still be mined when its time is over", async () => {
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

  it("has moved nothing when it reverted", async () => {
    const { ethereum, request, createBridge, approve, balanceOf, twoHosts } = world();
    await approve(request.amount);
    await ethereum.setAutomine(false);

    const create = () => createBridge({}, { rpcUrl: twoHosts });
    const transfer = create().bridge(request);
    const restore = await mineWith(adapter, revertingCode);

    const error = await expectBridgeError(transfer, "send_reverted");
    expect(error.moneyMayHaveMoved).toBe(false);
    expect(await balanceOf(ethereum, usdt, adapter)).toBe(0n);
    await expectBridgeError(create().track({ hash: error.hash ?? "0x" }), "send_reverted");
    await restore();
  });

  it("may have moved tokens when it succeeded without an event", async () => {
    const { ethereum, request, createBridge, approve } = world();
    await approve(request.amount);
    await ethereum.setAutomine(false);

    const transfer = createBridge().bridge(request);
    const restore = await mineWith(adapter, silentCode);

    const error = await expectBridgeError(transfer, "outcome_unclear");
    expect(error.moneyMayHaveMoved).toBe(true);
    expect(error.hash).toBeDefined();
    await restore();
  });

  it("has moved no token when its approval reverted", async () => {
    const { ethereum, request, createBridge } = world();
    await ethereum.setAutomine(false);

    const transfer = createBridge().bridge(request);
    const restore = await mineWith(usdt, revertingCode);

    await expectBridgeError(transfer, "approval_reverted");
    await restore();
  });
});
