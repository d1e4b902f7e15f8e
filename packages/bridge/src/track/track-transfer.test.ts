import { testOft, testOftAdapter } from "@coinslot/devnet";
import {
  type Address,
  concat,
  encodeDeployData,
  encodeFunctionData,
  type Hash,
  type Hex,
  numberToHex,
  pad,
} from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import type { BridgeResult, TrackedProgress, TrackOptions } from "../index.ts";
import { contractOf, usdt, usdt0, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { type RpcProxy, startRpcProxy } from "../testing/rpc-proxy.ts";

const world = useBridgeWorld();
const proxies: RpcProxy[] = [];

afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

const logFilter = z.tuple([z.object({ fromBlock: z.string(), toBlock: z.string() })]);

async function startProxy(): Promise<RpcProxy> {
  const proxy = await startRpcProxy(world().plasma.rpcUrl);
  proxies.push(proxy);
  return proxy;
}

function send(change: { targetChain?: string; recipient?: string } = {}): Promise<BridgeResult> {
  const { createBridge, request } = world();
  return createBridge().bridge({ ...request, ...change });
}

async function setPeer(oft: Address, eid: number, peer: Hex): Promise<void> {
  const { abi } = testOft;
  const data = encodeFunctionData({ abi, functionName: "setPeer", args: [eid, peer] });
  await world().ethereum.send({ to: oft, data });
}

/** Tracks as another process would, and returns the reported states. */
function track(hash: Hash, options: Partial<TrackOptions> = {}, targetUrl?: string) {
  const { buyer, createBridge, plasma } = world();
  const steps: TrackedProgress[] = [];
  const bridge = createBridge({
    account: buyer,
    targetRpcUrls: { plasma: targetUrl ?? plasma.rpcUrl },
  });
  const delivered = bridge.track({
    hash,
    pollIntervalMs: 10,
    onProgress: (progress) => void steps.push(progress),
    ...options,
  });
  const states = () => steps.map(({ state }) => state);
  const until = (...expected: string[]) =>
    vi.waitFor(() => expect(states()).toEqual(expected), { timeout: 20_000, interval: 10 });
  return { delivered, steps, states, until };
}

describe("tracking", () => {
  it("follows a transfer from the source chain to its depth on the target chain", async () => {
    const { plasma, layerZero, buyer, request } = world();
    const sent = await send();
    const { delivered, until } = track(sent.hash);
    await until("in_flight");
    await layerZero.deliver();
    await until("in_flight", "received");
    await plasma.mine(9);
    expect(await delivered).toMatchObject({
      state: "delivered",
      hash: sent.hash,
      guid: sent.guid,
      sourceChain: "ethereum",
      targetChain: "plasma",
      amountSent: request.amount,
      amountReceived: request.amount,
      recipient: buyer,
    });
    expect((await delivered).confirmations).toBeGreaterThanOrEqual(10);
  });

  it("finds an old arrival", async () => {
    const { plasma, layerZero } = world();
    const sent = await send();
    await layerZero.deliver();
    await plasma.mine(100);
    const { delivered, states } = track(sent.hash);
    await delivered;
    expect(states()).toEqual(["delivered"]);
  });

  it("finds an arrival at a node that limits its log range", async () => {
    const { plasma, layerZero } = world();
    const sent = await send();
    await layerZero.deliver();
    await plasma.mine(60);
    const proxy = await startProxy();
    proxy.judge(({ method, params }) => {
      if (method !== "eth_getLogs") return "forward";
      const [{ fromBlock, toBlock }] = logFilter.parse(params);
      const isShort = BigInt(toBlock) - BigInt(fromBlock) < 20n;
      return isShort ? "forward" : { error: { code: -32005, message: "block range too large" } };
    });
    const { delivered } = track(sent.hash, {}, proxy.url);
    expect((await delivered).guid).toBe(sent.guid);
  });

  it("survives a temporary outage of its endpoints", async () => {
    const { layerZero } = world();
    const sent = await send();
    const proxy = await startProxy();
    const { delivered, until } = track(sent.hash, { confirmations: 1 }, proxy.url);
    await until("in_flight");
    proxy.judge(() => "drop");
    await layerZero.deliver();
    const before = proxy.calls.length;
    await vi.waitFor(() => expect(proxy.calls.length).toBeGreaterThan(before), 20_000);
    proxy.judge(() => "forward");
    await delivered;
  });
});

describe("a reorganisation", () => {
  it("puts the tokens back in flight on the target chain, until they arrive again", async () => {
    const { plasma, layerZero } = world();
    const sent = await send();
    const { delivered, steps, until } = track(sent.hash, { confirmations: 3 });
    await until("in_flight");
    await layerZero.deliver();
    await until("in_flight", "received");
    // The message was verified in one block, and executed in the next.
    await plasma.reorg({ depth: 2 });
    await until("in_flight", "received", "in_flight");
    await layerZero.deliver();
    await until("in_flight", "received", "in_flight", "received");
    await plasma.mine(2);
    const { guid } = await delivered;
    expect(guid).toBe(sent.guid);
    expect(steps).toHaveLength(5);
  });

  it("can give the message another GUID on the source chain, which is then followed", async () => {
    const { ethereum, plasma, layerZero, request, createBridge, approve } = world();
    await approve(request.amount);
    const { buyer, others } = ethereum.accounts;
    const [other] = others;
    if (other === undefined) throw new Error("The devnet has no other account");
    const raws: Hex[] = [];
    const account = {
      address: buyer.address,
      async signTransaction(transaction: Parameters<typeof buyer.signTransaction>[0]) {
        const raw = await buyer.signTransaction(transaction);
        raws.push(raw);
        return raw;
      },
    };
    const sent = await createBridge({ account }).bridge(request);
    const { delivered, until } = track(sent.hash, { confirmations: 1 });
    await until("in_flight");

    await ethereum.reorg({ depth: 1 });
    await until("in_flight", "pending");
    // Another sender's message takes its nonce.
    await ethereum.mint({ token: usdt, to: other.address, amount: request.amount });
    await createBridge({ account: other }).bridge(request);
    const [serializedTransaction] = raws;
    if (serializedTransaction === undefined) throw new Error("Nothing was signed");
    await ethereum.client.sendRawTransaction({ serializedTransaction });
    await until("in_flight", "pending", "in_flight");
    await layerZero.deliver();

    const { guid, hash } = await delivered;
    expect(hash).toBe(sent.hash);
    expect(guid).not.toBe(sent.guid);
    expect(plasma.chainId).toBe(9745);
  });
});

describe("the end of tracking", () => {
  it("comes at its timeout, with the money's location", async () => {
    const sent = await send();
    const { delivered } = track(sent.hash, { timeoutMs: 50 });
    const error = await expectBridgeError(delivered, "delivery_timeout");
    expect(error.moneyMayHaveMoved).toBe(true);
    expect(error.progress).toMatchObject({ state: "in_flight", guid: sent.guid });
    expect(error.message).toMatch(/^The tokens have left ethereum in block \d+ and were not seen/);
    expect(error.message).toContain(sent.guid);
  });

  it("comes at its timeout before the depth is reached", async () => {
    const { layerZero } = world();
    const sent = await send();
    await layerZero.deliver();
    const error = await expectBridgeError(
      track(sent.hash, { timeoutMs: 50 }).delivered,
      "delivery_timeout",
    );
    expect(error.message).toMatch(/^The tokens are on plasma since transaction 0x/);
  });

  it("comes at its timeout for an unknown transaction", async () => {
    const hash: Hash = `0x${"ab".repeat(32)}`;
    const { delivered } = track(hash, { timeoutMs: 50 });
    const error = await expectBridgeError(delivered, "delivery_timeout");
    expect(error.message).toContain("is in no block");
  });

  it("comes when the transaction sends no tokens", async () => {
    const { ethereum, buyer } = world();
    const hash = await ethereum.mint({ token: usdt, to: buyer, amount: 1n });
    await expectBridgeError(track(hash).delivered, "not_a_transfer");
  });

  it("comes at once for a malformed hash", async () => {
    await expectBridgeError(track("0x1234").delivered, "not_a_transfer");
  });

  it("comes when the target is outside the EVM, with the GUID", async () => {
    const tron = `0x${"00".repeat(12)}a614f803b6fd780986a42c78ec9c7f77e6ded13c` as const;
    await setPeer(contractOf("ethereum", "legacyMesh"), 30420, tron);
    const recipient = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
    const sent = await send({ targetChain: "tron", recipient });
    const error = await expectBridgeError(track(sent.hash).delivered, "target_not_watchable");
    expect(error.progress).toMatchObject({ targetChain: "tron", guid: sent.guid });
    expect(error.message).toContain(sent.guid);
  });

  it("comes when the target has no URL", async () => {
    const { createBridge } = world();
    const sent = await send();
    const tracked = createBridge({ targetRpcUrls: {} }).track({ hash: sent.hash });
    await expectBridgeError(tracked, "target_not_watchable");
  });

  it("comes when the bridge is closed", async () => {
    const { request, createBridge } = world();
    const bridge = createBridge();
    const { hash } = await bridge.bridge(request);
    const onProgress = () => bridge.close();
    await expectBridgeError(bridge.track({ hash, onProgress }), "delivery_timeout");
  });

  it("comes at an abort", async () => {
    const sent = await send();
    const abort = new AbortController();
    const { delivered, until } = track(sent.hash, { signal: abort.signal });
    await until("in_flight");
    abort.abort(new Error("enough"));
    await expect(delivered).rejects.toThrow("enough");
  });

  it("comes at an abort or timeout in the middle of a long search", async () => {
    const { plasma } = world();
    const sent = await send();
    await plasma.mine(200);
    const proxy = await startProxy();
    const abort = new AbortController();
    let searches = 0;
    // It answers for one block at a time.
    proxy.judge(({ method, params }) => {
      if (method !== "eth_getLogs") return "forward";
      const [{ fromBlock, toBlock }] = logFilter.parse(params);
      if (fromBlock !== toBlock) return { error: { code: -32005, message: "range too large" } };
      searches += 1;
      if (searches === 3) abort.abort(new Error("enough"));
      return "forward";
    });
    const aborted = track(sent.hash, { signal: abort.signal }, proxy.url).delivered;
    await expect(aborted).rejects.toThrow("enough");
    expect(searches).toBe(3);

    const late = track(sent.hash, { timeoutMs: 1 }, proxy.url).delivered;
    const error = await expectBridgeError(late, "delivery_timeout");
    expect(error.progress).toMatchObject({ state: "in_flight", guid: sent.guid });
    expect(searches).toBeLessThan(20);
  });
});

describe("a custom contract", () => {
  const oft = "0x00000000000000000000000000000000000f0000";

  it("is accepted only if it was named", async () => {
    const { ethereum, layerZero, request, createBridge } = world();
    const args = [layerZero.endpoint, usdt] as const;
    const creationCode = encodeDeployData({ ...testOftAdapter, args });
    await ethereum.place({ address: oft, creationCode });
    await setPeer(oft, 30383, pad(contractOf("plasma", "oft")));
    const sent = await createBridge().bridge({ ...request, oftContractAddress: oft });

    await expectBridgeError(track(sent.hash).delivered, "not_a_transfer");
    const { delivered, until } = track(sent.hash, { oftContractAddress: oft });
    await until("in_flight");
    delivered.catch(() => undefined);
  });

  it("cannot fake an arrival", async () => {
    const { plasma, buyer, request } = world();
    const sent = await send();
    // An OFT with an externally owned account as its endpoint.
    const liar = plasma.accounts.seller;
    const args = [liar.address, usdt0] as const;
    await plasma.place({ address: oft, creationCode: encodeDeployData({ ...testOft, args }) });
    const { abi } = testOft;
    const origin = { srcEid: 30101, sender: pad(contractOf("ethereum", "oft")), nonce: 1n };
    const message = concat([pad(buyer), numberToHex(request.amount, { size: 8 })]);
    const peer = encodeFunctionData({ abi, functionName: "setPeer", args: [30101, origin.sender] });
    await plasma.send({ to: oft, data: peer });
    const hash = await plasma.client.writeContract({
      account: liar,
      address: oft,
      abi,
      functionName: "lzReceive",
      args: [origin, sent.guid, message, liar.address, "0x"],
    });
    const receipt = await plasma.client.waitForTransactionReceipt({ hash });
    expect(receipt.logs.at(-1)?.topics[1]).toBe(sent.guid);

    const { delivered } = track(sent.hash, { timeoutMs: 100, confirmations: 1 });
    await expectBridgeError(delivered, "delivery_timeout");
  });
});

describe("tracking with a wrong argument", () => {
  const hash: Hash = `0x${"ab".repeat(32)}`;

  it.each([
    { confirmations: 0 },
    { confirmations: -3 },
    { confirmations: 2.5 },
    { confirmations: Number.NaN },
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { pollIntervalMs: -1 },
  ])("is refused for %o", async (change) => {
    await expectBridgeError(track(hash, change).delivered, "invalid_configuration");
  });

  it("is refused with a transaction of another chain", async () => {
    const { ethereum, plasma, request, createBridge } = world();
    let transaction: Hex | undefined;
    const { hash } = await createBridge().bridge(request, {
      onProgress: (step) => {
        if (step.state === "sending") transaction = step.transaction;
      },
    });
    const elsewhere = createBridge(
      { targetRpcUrls: { ethereum: ethereum.rpcUrl } },
      { rpcUrl: plasma.rpcUrl },
    );
    await expectBridgeError(elsewhere.track({ hash, transaction }), "not_a_transfer");
  });

  it.each<Hex>(["0x", "0x02", "0xc0", "0x1234"])(
    "is refused with %s, which is not the transaction of the hash",
    async (transaction) => {
      await expectBridgeError(track(hash, { transaction }).delivered, "not_a_transfer");
    },
  );
});
