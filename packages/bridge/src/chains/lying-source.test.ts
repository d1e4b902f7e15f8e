import { createClient, type Hash, type Hex, http, isHex, keccak256, toHex } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { createTopUp } from "../index.ts";
import { usdt, usdt0, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { type RpcProxy, type RpcProxyCall, startRpcProxy } from "../testing/rpc-proxy.ts";
import { isBroadcast } from "../testing/send-scene.ts";

const world = useBridgeWorld();
const proxies: RpcProxy[] = [];
afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

async function startProxy(): Promise<RpcProxy> {
  const proxy = await startRpcProxy(world().ethereum.rpcUrl);
  proxies.push(proxy);
  return proxy;
}

/** A nonce, as a node returns it. */
const quantity = z.string().transform(Number);

/** Two honest hosts of the target chain, which are one node by two names. */
function honestTargets(): { plasma: string[] } {
  const { rpcUrl } = world().plasma;
  return { plasma: [rpcUrl, rpcUrl.replace("127.0.0.1", "localhost")] };
}

/** A stranger's transfer, which has arrived. */
async function deliverStranger(): Promise<Hash> {
  const { ethereum, layerZero, request, createBridge } = world();
  const [stranger] = ethereum.accounts.others;
  if (stranger === undefined) throw new Error("The devnet has no other account");
  await ethereum.mint({ token: usdt, to: stranger.address, amount: request.amount });
  const bridge = createBridge({ account: stranger });
  const { hash } = await bridge.bridge({ ...request, recipient: stranger.address });
  await layerZero.deliver();
  return hash;
}

/** A node that shows a stranger's transfer under the hash of each other transaction. */
async function startSwapper(stranger: Hash): Promise<RpcProxy> {
  const proxy = await startProxy();
  const node = createClient({ transport: http(world().ethereum.rpcUrl) });
  const swapped = await node.request({
    method: "eth_getTransactionReceipt",
    params: [stranger],
  });
  proxy.judge(({ method, params: [hash] }) =>
    method === "eth_getTransactionReceipt"
      ? { result: { ...swapped, transactionHash: hash } }
      : "forward",
  );
  return proxy;
}

describe("a source node that shows a stranger's transfer as ours", () => {
  it("ends no transfer beside an honest one", async () => {
    const { ethereum, plasma, layerZero, request, createBridge } = world();
    const liar = await startSwapper(await deliverStranger());
    const { hash, guid } = await createBridge().bridge(request);
    await plasma.mine(1);
    const track = (rpcUrl: string[]) =>
      createBridge({ targetRpcUrls: honestTargets() }, { rpcUrl }).track({
        hash,
        confirmations: 1,
        timeoutMs: 50,
        pollIntervalMs: 10,
      });
    const error = await expectBridgeError(track([liar.url, ethereum.rpcUrl]), "delivery_timeout");
    expect(error.moneyMayHaveMoved).toBe(true);
    expect(error.message).toContain("not confirmed by nodes of two hosts");

    await layerZero.deliver();
    expect(await track(world().twoHosts)).toMatchObject({ state: "delivered", hash, guid });
    // The liar can hold it up.
    await expectBridgeError(track([liar.url, ethereum.rpcUrl]), "delivery_timeout");
  });

  it("does not deny a transfer beside an honest one", async () => {
    const { ethereum, buyer, createBridge, request } = world();
    const { hash } = await createBridge().bridge(request);
    const liar = await startSwapper(await ethereum.mint({ token: usdt, to: buyer, amount: 1n }));
    const how = { hash, timeoutMs: 50, pollIntervalMs: 10 };
    const both = createBridge({}, { rpcUrl: [liar.url, ethereum.rpcUrl] });
    await expectBridgeError(both.track(how), "delivery_timeout");
    const alone = createBridge({}, { rpcUrl: liar.url });
    await expectBridgeError(alone.track(how), "not_a_transfer");
  });

  it("does not make a top-up bridge a second time", async () => {
    const { ethereum, approve, buyer, createBridge, countSent } = world();
    await approve(10_000_000n);
    const liar = await startSwapper(await deliverStranger());
    const bridge = createBridge(
      { targetRpcUrls: honestTargets() },
      { rpcUrl: [liar.url, ethereum.rpcUrl] },
    );
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
    const bring = () => topUp({ payer: buyer, needs: [need], signal: undefined });
    await expectBridgeError(bring(), "delivery_timeout");
    await expectBridgeError(bring(), "delivery_timeout");
    expect(asked).toBe(1);
    // The approval, and one transfer.
    await expect.poll(countSent, { timeout: 20_000 }).toBe(2);
  });
});

it("a send that a node accepts and keeps reaches the other nodes", async () => {
  const { ethereum, request, approve, createBridge } = world();
  await approve(request.amount);
  const liar = await startProxy();
  liar.judge((call) => (isBroadcast(call) ? { result: keccak256(bytesOf(call)) } : "forward"));
  const bridge = createBridge(
    { receiptTimeoutMs: 20_000 },
    { rpcUrl: [liar.url, ethereum.rpcUrl] },
  );
  const { hash } = await bridge.bridge(request);
  expect((await ethereum.client.getTransactionReceipt({ hash })).status).toBe("success");
});

function bytesOf({ params: [bytes] }: RpcProxyCall): Hex {
  if (!isHex(bytes)) throw new Error("The broadcast has no bytes");
  return bytes;
}

/** Each wait takes ten seconds, in no time. */
function createFastClock() {
  let now = 0;
  return {
    now: () => now,
    setTimer(work: () => void) {
      now += 10_000;
      const timer = setImmediate(work);
      return () => clearImmediate(timer);
    },
  };
}

it("a source node that denies a transfer does not replace it by itself", async () => {
  const { ethereum, request, createBridge } = world();
  let transaction: Hex | undefined;
  const { hash } = await createBridge().bridge(request, {
    onProgress(progress) {
      if (progress.state === "sending") transaction = progress.transaction;
    },
  });
  const liar = await startProxy();
  const denied = ["eth_getTransactionReceipt", "eth_getTransactionByHash"];
  liar.judge((call) => {
    if (isBroadcast(call)) return { result: hash };
    return denied.includes(call.method) ? { result: null } : "forward";
  });
  const bridge = createBridge(
    { clock: createFastClock() },
    { rpcUrl: [liar.url, ethereum.rpcUrl] },
  );
  const tracking = bridge.track({ hash, transaction, timeoutMs: 300_000 });
  await expectBridgeError(tracking, "delivery_timeout");
});

it("a send that all nodes refuse is the only one of a top-up, whatever nonce they return", async () => {
  const { ethereum, layerZero, buyer, approve, createBridge } = world();
  await approve(10_000_000n);
  const kept = new Set<Hex>();
  let ahead = 0;
  const keeper = await startProxy();
  keeper.judge((call) => {
    if (isBroadcast(call)) {
      kept.add(bytesOf(call));
      return { error: { code: -32000, message: "insufficient funds" } };
    }
    if (call.method === "eth_getTransactionByHash") return { result: null };
    if (call.method !== "eth_getTransactionCount") return "forward";
    return { answer: (given) => toHex(quantity.parse(given) + ahead) };
  });
  const bridge = createBridge({}, { rpcUrl: [keeper.url, ethereum.rpcUrl] });
  let asked = 0;
  const topUp = createTopUp({
    bridge,
    token: usdt,
    ask() {
      asked += 1;
      return true;
    },
    async onProgress({ state }) {
      if (state !== "sending") return;
      await ethereum.client.setBalance({ address: buyer, value: 0n });
    },
    timeoutMs: 50,
    pollIntervalMs: 10,
  });
  const need = { network: "eip155:9745", asset: usdt0, amount: 1_000_000n, balance: 0n };
  const bring = () => topUp({ payer: buyer, needs: [need], signal: undefined });
  const error = await expectBridgeError(bring(), "outcome_unclear");
  expect(error.message).toContain("insufficient funds");
  const { hash } = error;
  if (hash === undefined) throw new Error("Nothing was signed");

  await ethereum.client.setBalance({ address: buyer, value: 10n ** 18n });
  ahead = 1;
  // The same bytes are sent again, and the honest node takes them.
  await expectBridgeError(bring(), "delivery_timeout");
  await ethereum.client.waitForTransactionReceipt({ hash });
  expect(asked).toBe(1);
  expect(kept.size).toBe(1);
  expect(await layerZero.deliver()).toHaveLength(1);
});
