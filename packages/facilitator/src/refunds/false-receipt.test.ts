import type { Devnet } from "@coinslot/devnet";
import { isHex, keccak256, toEventSelector, toFunctionSelector, zeroHash } from "viem";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import type { RefundOptions } from "../configuration/refund-options.ts";
import { type NodeProxy, startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  floatAccount,
  idInLedger,
  loseRefund,
  patience,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { cancel, drain, reserve, settle } from "../testing/settling-actions.ts";
import type { SettlingDevnet } from "../testing/settling-devnet.ts";
import { signRefunds } from "./sign-refunds.ts";

const rangeSchema = z.object({ fromBlock: z.string(), toBlock: z.string() });
const placedSchema = z.object({ result: z.looseObject({ blockNumber: z.string() }).nullable() });

const stateSelector = toFunctionSelector("authorizationState(address,bytes32)");

const begin = useRefundingDevnet();
let proxy: NodeProxy | undefined;

afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
});

/** A receipt as a node writes it. */
async function readReceipt(rpcUrl: string, hash: string): Promise<object> {
  const call = { jsonrpc: "2.0", id: 1, method: "eth_getTransactionReceipt", params: [hash] };
  const headers = { "content-type": "application/json" };
  const response = await fetch(rpcUrl, { method: "POST", headers, body: JSON.stringify(call) });
  return z.object({ result: z.looseObject({}) }).parse(await response.json()).result;
}

/**
 * A node that sends the first transaction while it is armed into a block that leaves the chain. It
 * names the hash of the one in its place.
 */
async function startForger(
  devnet: Devnet,
  lies: { isArmed: boolean; isTold: boolean },
): Promise<NodeProxy> {
  const forged = new Map<unknown, object>();
  proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method === "eth_getTransactionReceipt" && forged.has(raw) && lies.isTold) {
      return { result: forged.get(raw) };
    }
    const isSent = method === "eth_sendRawTransaction" && lies.isArmed;
    if (!isSent || !isHex(raw) || forged.size > 0) return ask();
    const hash = await devnet.client.sendRawTransaction({ serializedTransaction: raw });
    const receipt = await vi.waitFor(() => readReceipt(devnet.rpcUrl, hash), patience);
    await devnet.reorg({ depth: 1 });
    const { hash: blockHash } = await devnet.client.getBlock();
    forged.set(keccak256(raw), { ...receipt, blockHash });
    return { result: hash };
  });
  return proxy;
}

/**
 * A payment that is final by the receipt of a lying node, which is asked first. Its block has left
 * the chain, and the receipt names the hash of the one in its place.
 */
async function payByFalseReceipt(
  here: SettlingDevnet,
  options: { nodes?: number; refunds?: RefundOptions } = {},
) {
  const { nodes = 2, refunds = withFloat.refunds } = options;
  const { devnet, balanceOf, pay, start } = here;
  const forger = await startForger(devnet, { isArmed: true, isTold: true });
  const rpcUrls = [forger.url, devnet.rpcUrl].slice(0, nodes);
  const facilitator = await start({
    refunds,
    network: { ...withFloat.network, rpcUrls, blockTimeSeconds: 1 },
  });
  const paid = await pay();
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  const payment = await idInLedger(facilitator, paid);
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(await facilitator.payments.get(payment)).toMatchObject({ finalAt: expect.anything() });
  }, patience);
  expect(await balanceOf(devnet.accounts.seller.address)).toBe(0n);
  return { facilitator, paid, payment };
}

it.each([1, 2])(
  "a refund of a payment that is final by a false receipt waits, with a lying node first of %s",
  async (nodes) => {
    const here = await begin("sqlite");
    const { facilitator, payment } = await payByFalseReceipt(here, { nodes });
    const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
    await becomes(facilitator, here, refund, { state: "waiting", cause: "chain" });
    expect(await here.balanceOf(floatAccount.address)).toBe(10_000n);
  },
);

it.each([
  ["grants one block a query", undefined],
  ["has pruned its logs", []],
])(
  "a refund of a payment that a node has shown in another block goes out once it is honest, beside one that %s",
  async (_, logs) => {
    const here = await begin("sqlite");
    const { devnet, start, balanceOf } = here;
    await devnet.mine(3);
    let isLying = true;
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      const answer = await ask();
      if (!isLying || method !== "eth_getTransactionReceipt") return answer;
      const { result } = placedSchema.parse(answer);
      if (result === null) return answer;
      const blockNumber = BigInt(result.blockNumber) - 1n;
      const { hash: blockHash } = await devnet.client.getBlock({ blockNumber });
      return { result: { ...result, blockNumber: `0x${blockNumber.toString(16)}`, blockHash } };
    });
    const other = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [filter] }, ask) => {
      if (method !== "eth_getLogs") return ask();
      if (logs !== undefined) return { result: logs };
      const { fromBlock, toBlock } = rangeSchema.parse(filter);
      const error = { code: -32005, message: "query returned too much" };
      return fromBlock === toBlock ? ask() : { error };
    });
    onTestFinished(() => other.close());
    const rpcUrls = [proxy.url, other.url];
    const facilitator = await start({ ...withFloat, network: { ...withFloat.network, rpcUrls } });
    const payment = await settled(facilitator, here);
    await vi.waitFor(async () => {
      await devnet.mine(1);
      expect(await facilitator.payments.get(payment)).toMatchObject({ finalAt: expect.anything() });
    }, patience);
    isLying = false;
    const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
    await becomes(facilitator, here, refund, { state: "final" });
    expect(await balanceOf(floatAccount.address)).toBe(9_000n);
  },
);

it("a refund that is in a block by one node's false receipt alone is sent again", async () => {
  const here = await begin("sqlite");
  const { devnet, start, balanceOf } = here;
  const lies = { isArmed: false, isTold: true };
  const forger = await startForger(devnet, lies);
  const rpcUrls = [forger.url, devnet.rpcUrl];
  const facilitator = await start({ ...withFloat, network: { ...withFloat.network, rpcUrls } });
  const payment = await settled(facilitator, here);
  lies.isArmed = true;
  const states: string[] = [];
  facilitator.onEvent((event) => {
    if (event.type === "refund_changed") states.push(event.state);
  });
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(states.join()).toMatch(/confirmed,(sent|final)/);
  }, patience);
  expect(states).not.toContain("final");
  lies.isTold = false;
  await becomes(facilitator, here, refund, { state: "final" });
  expect(await balanceOf(floatAccount.address)).toBe(9_000n);
});

it("a refund whose execution a node has hidden is found where it was searched before", async () => {
  const here = await begin("sqlite");
  const { devnet, start, balanceOf } = here;
  let isArmed = false;
  let isLying = false;
  /** The highest block whose logs it has hidden. */
  let hidden = 0n;
  proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [call] }, ask) => {
    if (method === "eth_sendRawTransaction" && isArmed) isLying = true;
    const answer = await ask();
    if (!isLying || !("result" in answer) || answer.result === null) return answer;
    if (method === "eth_getLogs") {
      const to = BigInt(rangeSchema.parse(call).toBlock);
      if (to > hidden) hidden = to;
      return { result: [] };
    }
    if (method === "eth_call" && JSON.stringify(call).includes(stateSelector)) {
      return { result: zeroHash };
    }
    if (method !== "eth_getTransactionReceipt") return answer;
    return { result: { ...Object(answer.result), logs: [] } };
  });
  const rpcUrls = [proxy.url, devnet.rpcUrl];
  const facilitator = await start({
    ...withFloat,
    network: { ...withFloat.network, rpcUrls },
    times: { refundMs: 1_000 },
  });
  const payment = await settled(facilitator, here);
  // Another failed payment keeps the watch going while the refund is tried again.
  const other = await here.pay();
  const reservation = await reserve(facilitator, other);
  await drain(here);
  expect(await settle(facilitator, other, reservation)).toMatchObject({ success: false });
  await devnet.mine(3);
  isArmed = true;
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  const operationState = async () => {
    const { operation = "" } = (await facilitator.refunds.get(refund.id)) ?? {};
    return (await facilitator.payments.get(operation))?.state;
  };
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(await operationState()).toBe("failed");
  }, patience);
  // More than each search repeats.
  await devnet.mine(20);
  const head = await devnet.client.getBlockNumber({ cacheTime: 0 });
  await vi.waitFor(async () => {
    expect(hidden).toBeGreaterThanOrEqual(head);
    expect(await operationState()).toBe("failed");
  }, patience);
  isArmed = false;
  isLying = false;
  await becomes(facilitator, here, refund, { state: "final" });
  expect(await balanceOf(floatAccount.address)).toBe(9_000n);
});

it.each([
  ["has its use", "honest"],
  ["breaks off for its receipt", undefined],
  ["returns no receipt of its use", { result: null }],
  ["returns no readable receipt of its use", { result: { status: "maybe" } }],
] as const)(
  "a refund that one node alone shows as cancelled is not void where another %s",
  async (_, lack) => {
    const here = await begin("sqlite");
    const { devnet, start, balanceOf } = here;
    const first = await start(withFloat);
    const payment = await settled(first, here);
    await devnet.mine(3);
    await first.close();
    await loseRefund(here, payment);
    const [used, cancelled] = [
      toEventSelector("AuthorizationUsed(address,bytes32)"),
      toEventSelector("AuthorizationCanceled(address,bytes32)"),
    ];
    let isLying = true;
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      const isAboutLogs = method === "eth_getLogs" || method === "eth_getTransactionReceipt";
      if (!isLying || !isAboutLogs) return ask();
      const answer = JSON.stringify(await ask()).replaceAll(used, cancelled);
      return z.object({ result: z.unknown() }).parse(JSON.parse(answer));
    });
    let looks = 0;
    const other = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (method !== "eth_getTransactionReceipt") return ask();
      looks += 1;
      return isLying && lack !== "honest" ? lack : ask();
    });
    onTestFinished(() => other.close());
    const rpcUrls = [proxy.url, other.url];
    const third = await start({
      ...withFloat,
      network: { ...withFloat.network, rpcUrls },
      times: { refundMs: 100 },
    });
    const again = await third.refunds.create({ payment, idempotencyKey: "2" });
    await becomes(third, here, again, { state: "waiting", cause: "chain" });
    await devnet.mine(3);
    const asked = looks;
    await vi.waitFor(() => expect(looks).toBeGreaterThan(asked + 2), patience);
    expect(await third.refunds.get(again.id)).toMatchObject({ state: "waiting", cause: "chain" });
    isLying = false;
    await becomes(third, here, again, { state: "final", cause: "executed_elsewhere" });
    expect(await balanceOf(floatAccount.address)).toBe(9_000n);
  },
  120_000,
);

it("a refund waits, too, where the payer has cancelled the authorization behind a false receipt", async () => {
  const here = await begin("sqlite");
  const { facilitator, paid, payment } = await payByFalseReceipt(here);
  await cancel(here, here.devnet.accounts.buyer, paid);
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await becomes(facilitator, here, refund, { state: "waiting", cause: "chain" });
  expect(await here.balanceOf(floatAccount.address)).toBe(10_000n);
});

it("a refund that was signed elsewhere is refused where a false receipt alone has its payment", async () => {
  const here = await begin("sqlite");
  const { address } = floatAccount;
  const { facilitator, payment } = await payByFalseReceipt(here, { refunds: { address } });
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await becomes(facilitator, here, refund, { state: "unsigned", cause: "no_float" });
  const signed = await signRefunds(await facilitator.refunds.exportUnsigned(), floatAccount);
  expect(await facilitator.refunds.importSigned(signed)).toMatchObject({
    sent: [],
    refused: [{ id: refund.id, message: expect.stringContaining("payment in its block") }],
  });
});
