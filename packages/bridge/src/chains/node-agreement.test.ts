import { pad, toHex } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { type Bridge, createTopUp, type TransferProgress } from "../index.ts";
import { usdt, usdt0, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { type RpcProxy, startRpcProxy } from "../testing/rpc-proxy.ts";

const world = useBridgeWorld();
const proxies: RpcProxy[] = [];
afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

const receipt = z.looseObject({}).nullable();

/** Asks a top-up for a dollar, repeatedly on demand. */
function createAsker(bridge: Bridge) {
  let asked = 0;
  const topUp = createTopUp({
    bridge,
    token: usdt,
    ask() {
      asked += 1;
      return true;
    },
    timeoutMs: 50,
    pollIntervalMs: 10,
  });
  const need = { network: "eip155:9745", asset: usdt0, amount: 1_000_000n, balance: 0n };
  const bring = () => topUp({ payer: world().buyer, needs: [need], signal: undefined });
  return { bring, asked: () => asked };
}

/** A node that reports every transaction as reverted. */
async function startLiar(): Promise<RpcProxy> {
  const proxy = await startRpcProxy(world().ethereum.rpcUrl);
  proxies.push(proxy);
  proxy.judge(({ method }) =>
    method === "eth_getTransactionReceipt"
      ? {
          answer: (given) => {
            const parsed = receipt.parse(given);
            return parsed && { ...parsed, status: "0x0", logs: [] };
          },
        }
      : "forward",
  );
  return proxy;
}

describe("a reported revert of a transfer", () => {
  it("is not accepted from one of two nodes by the sender", async () => {
    const { ethereum, request, approve, createBridge } = world();
    await approve(request.amount);
    const rpcUrl = [(await startLiar()).url, ethereum.rpcUrl];
    const error = await expectBridgeError(
      createBridge({}, { rpcUrl }).bridge(request),
      "outcome_unclear",
    );
    expect(error.moneyMayHaveMoved).toBe(true);
    expect(error.message).toContain("Not every RPC endpoint reports");
  });

  it("is not accepted from the nodes of one host, in sending or tracking", async () => {
    const { request, approve, createBridge } = world();
    await approve(request.amount);
    const { url } = await startLiar();
    const bridge = createBridge({}, { rpcUrl: [url, `${url}/?other`] });
    const error = await expectBridgeError(bridge.bridge(request), "outcome_unclear");
    expect(error.message).toContain("by the RPC endpoints of one host only");
    const tracking = bridge.track({ hash: error.hash ?? "0x" });
    const tracked = await expectBridgeError(tracking, "outcome_unclear");
    expect(tracked.moneyMayHaveMoved).toBe(true);
  });

  it("is not accepted from two ports of one host", async () => {
    const { request, approve, createBridge } = world();
    await approve(request.amount);
    const urls = [(await startLiar()).url, (await startLiar()).url];
    // The unspecified address reaches this machine, and is no loopback address.
    const rpcUrl = urls.map((url) => url.replace("127.0.0.1", "0.0.0.0"));
    const sending = createBridge({}, { rpcUrl }).bridge(request);
    const error = await expectBridgeError(sending, "outcome_unclear");
    expect(error.message).toContain("by the RPC endpoints of one host only");
  });

  it("is not accepted from one of two nodes in tracking", async () => {
    const { ethereum, request, createBridge } = world();
    const { hash } = await createBridge().bridge(request);
    const rpcUrl = [(await startLiar()).url, ethereum.rpcUrl];
    const tracking = createBridge({}, { rpcUrl }).track({
      hash,
      timeoutMs: 50,
      pollIntervalMs: 10,
    });
    await expectBridgeError(tracking, "delivery_timeout");
  });

  it("does not make a top-up bridge a second time", async () => {
    const { ethereum, approve, createBridge, countSent } = world();
    await approve(10_000_000n);
    const rpcUrl = [(await startLiar()).url, ethereum.rpcUrl];
    const { bring, asked } = createAsker(createBridge({}, { rpcUrl }));
    await expectBridgeError(bring(), "outcome_unclear");
    await expectBridgeError(bring(), "delivery_timeout");
    expect(asked()).toBe(1);
    // The approval, and one transfer.
    expect(await countSent()).toBe(2);
  });
});

it("a reported reuse of a transfer's nonce is not accepted from one of two nodes", async () => {
  const { ethereum, request, approve, createBridge } = world();
  await approve(request.amount);
  const signed: { transaction?: `0x${string}`; hash?: `0x${string}` } = {};
  const onProgress = (progress: TransferProgress) => {
    if (progress.state !== "sending") return;
    Object.assign(signed, progress);
    throw new Error("It is not sent");
  };
  await expect(createBridge().bridge(request, { onProgress })).rejects.toThrow("It is not sent");
  const { hash, transaction } = signed;
  if (hash === undefined || transaction === undefined) throw new Error("Nothing was signed");

  const startUsed = async () => {
    const liar = await startRpcProxy(ethereum.rpcUrl);
    proxies.push(liar);
    liar.judge(({ method }) => {
      if (method === "eth_getTransactionCount") return { answer: () => toHex(1_000) };
      // The transaction is dropped.
      const isSend = method === "eth_sendRawTransaction";
      return isSend ? { error: { code: -32000, message: "try again" } } : "forward";
    });
    return liar;
  };
  const [liar, second] = [await startUsed(), await startUsed()];
  let now = 0;
  const clock = {
    now: () => now,
    setTimer(work: () => void) {
      now += 30_000;
      const timer = setImmediate(work);
      return () => clearImmediate(timer);
    },
  };
  const track = (rpcUrl: string[]) =>
    createBridge({ clock }, { rpcUrl }).track({ hash, transaction, timeoutMs: 300_000 });
  await expectBridgeError(track([liar.url, second.url]), "replaced");
  await expectBridgeError(track([liar.url]), "outcome_unclear");
  await expectBridgeError(track([liar.url, ethereum.rpcUrl]), "delivery_timeout");
});

describe("a refused send", () => {
  /** A node that answers every transaction with a refusal, and may broadcast it anyway. */
  async function startRefuser(): Promise<RpcProxy> {
    const proxy = await startRpcProxy(world().ethereum.rpcUrl);
    proxies.push(proxy);
    proxy.judge(({ method }) => {
      if (method === "eth_getTransactionByHash") return { answer: () => null };
      const isSend = method === "eth_sendRawTransaction";
      return isSend ? { error: { code: -32000, message: "no, thanks" } } : "forward";
    });
    return proxy;
  }

  it("is not final at one of two nodes: the other gets the same bytes", async () => {
    const { ethereum, request, approve, createBridge, countSent } = world();
    await approve(request.amount);
    const rpcUrl = [(await startRefuser()).url, ethereum.rpcUrl];
    const { hash } = await createBridge({}, { rpcUrl }).bridge(request);
    expect(hash).toMatch(/^0x/);
    // The approval, and one transfer.
    expect(await countSent()).toBe(2);
  });

  it("is not final at the nodes of one host, and a top-up sends no other", async () => {
    const { approve, createBridge, countSent } = world();
    await approve(10_000_000n);
    const { bring, asked } = createAsker(createBridge({}, { rpcUrl: (await startRefuser()).url }));
    const error = await expectBridgeError(bring(), "outcome_unclear");
    expect(error.message).toContain("no, thanks. A host that refused it may have kept it");
    await expectBridgeError(bring(), "delivery_timeout");
    expect(asked()).toBe(1);
    expect(await countSent()).toBe(1);
  });

  it("leaves the outcome unclear while another node does not answer", async () => {
    const { request, approve, createBridge } = world();
    await approve(request.amount);
    const refuser = await startRefuser();
    const silent = await startRpcProxy(world().ethereum.rpcUrl);
    proxies.push(silent);
    silent.judge(({ method }) => (method === "eth_sendRawTransaction" ? "drop" : "forward"));
    const rpcUrl = [refuser.url, silent.url];
    const sending = createBridge({ receiptTimeoutMs: 50 }, { rpcUrl }).bridge(request);
    const error = await expectBridgeError(sending, "outcome_unclear");
    expect(error.moneyMayHaveMoved).toBe(true);
  });

  it("is not final when all nodes agree: one may have kept it", async () => {
    const { request, approve, createBridge } = world();
    await approve(request.amount);
    const rpcUrl = [(await startRefuser()).url, (await startRefuser()).url];
    const sending = createBridge({}, { rpcUrl }).bridge(request);
    const error = await expectBridgeError(sending, "outcome_unclear");
    expect(error.moneyMayHaveMoved).toBe(true);
  });
});

describe("a target chain with nodes of two hosts", () => {
  /** A node of Plasma that lags behind the arrival. */
  async function startDenier(): Promise<RpcProxy> {
    const proxy = await startRpcProxy(world().plasma.rpcUrl);
    proxies.push(proxy);
    proxy.judge(({ method }) => {
      if (method === "eth_getTransactionReceipt") return { answer: () => null };
      return method === "eth_call" ? { answer: () => pad("0x0") } : "forward";
    });
    return proxy;
  }

  it("ends a transfer only when both report the delivery", async () => {
    const { plasma, layerZero, request, createBridge } = world();
    const denier = await startDenier();
    const sent = await createBridge().bridge(request);
    await layerZero.deliver();
    const track = (targets: string[]) =>
      createBridge({ targetRpcUrls: { plasma: targets } }).track({
        hash: sent.hash,
        confirmations: 1,
        timeoutMs: 50,
        pollIntervalMs: 10,
      });
    await expectBridgeError(track([plasma.rpcUrl, denier.url]), "delivery_timeout");
    const second = plasma.rpcUrl.replace("127.0.0.1", "localhost");
    expect(await track([plasma.rpcUrl, second])).toMatchObject({ state: "delivered" });
    // A single node suffices where there is no other.
    expect(await track([plasma.rpcUrl])).toMatchObject({ state: "delivered" });
  });

  it("counts the highest balance: a top-up brings no tokens that are already there", async () => {
    const { plasma, buyer, createBridge, countSent } = world();
    await plasma.mint({ token: usdt0, to: buyer, amount: 1_000_000n });
    for (const targets of [
      [(await startDenier()).url, plasma.rpcUrl],
      ["http://127.0.0.1:1", plasma.rpcUrl],
    ]) {
      const bridge = createBridge({ targetRpcUrls: { plasma: targets } });
      const { bring, asked } = createAsker(bridge);
      expect(await bring()).toBe(true);
      expect(asked()).toBe(0);
    }
    expect(await countSent()).toBe(0);
  });
});
