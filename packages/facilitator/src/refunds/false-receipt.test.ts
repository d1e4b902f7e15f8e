import type { Devnet } from "@coinslot/devnet";
import { isHex, keccak256 } from "viem";
import { afterEach, expect, it, vi } from "vitest";
import * as z from "zod";
import type { RefundOptions } from "../configuration/refund-options.ts";
import { type NodeProxy, startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  floatAccount,
  idInLedger,
  patience,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { cancel, settle } from "../testing/settling-actions.ts";
import type { SettlingDevnet } from "../testing/settling-devnet.ts";
import { signRefunds } from "./sign-refunds.ts";

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
async function startForger(devnet: Devnet, isArmed: () => boolean): Promise<NodeProxy> {
  const forged = new Map<unknown, object>();
  proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method === "eth_getTransactionReceipt" && forged.has(raw)) {
      return { result: forged.get(raw) };
    }
    const isSent = method === "eth_sendRawTransaction" && isArmed();
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
  const forger = await startForger(devnet, () => true);
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

it("a refund that is in a block by one node's false receipt alone is not final", async () => {
  const here = await begin("sqlite");
  const { devnet, start, balanceOf } = here;
  const lies = { isArmed: false };
  const forger = await startForger(devnet, () => lies.isArmed);
  const rpcUrls = [forger.url, devnet.rpcUrl];
  const facilitator = await start({ ...withFloat, network: { ...withFloat.network, rpcUrls } });
  const payment = await settled(facilitator, here);
  lies.isArmed = true;
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await becomes(facilitator, here, refund, { state: "confirmed", cause: "chain" });
  expect(await balanceOf(floatAccount.address)).toBe(10_000n);
});

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
