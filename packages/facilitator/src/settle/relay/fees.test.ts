import { getChainPreset } from "@coinslot/chain";
import { type Hex, isHex, numberToHex, parseGwei, parseTransaction } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { holdRequests, settle } from "../../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;

async function begin(): Promise<SettlingDevnet> {
  settling = await startSettlingDevnet("sqlite");
  return settling;
}

afterEach(async () => {
  await settling?.stop();
  await proxy?.close();
  settling = undefined;
  proxy = undefined;
});

async function setBaseFee({ devnet }: SettlingDevnet, gwei: string): Promise<void> {
  await devnet.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) });
  await devnet.mine();
}

describe("a chain without a base fee", () => {
  it("gets a gas price, and a higher one for a stuck transaction", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const broadcasts = new Set<Hex>();
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
      if (method === "eth_maxPriorityFeePerGas") {
        return { error: { code: -32601, message: "the method does not exist" } };
      }
      if (method === "eth_sendRawTransaction" && isHex(raw)) {
        if (parseTransaction(raw).type !== "legacy") {
          return { error: { code: -32000, message: "transaction type not supported" } };
        }
        broadcasts.add(raw);
      }
      const answer = await ask();
      if (method !== "eth_getBlockByNumber" || !("result" in answer)) return answer;
      const block = z.looseObject({}).nullable().parse(answer.result);
      if (block === null) return answer;
      const { baseFeePerGas: _, ...others } = block;
      return { result: others };
    });
    const facilitator = await start({
      network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
      times: { resendMs: 100, replaceMs: 200 },
    });
    const payments = await Promise.all([pay(), pay(), pay()]);
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.map(({ success }) => success)).toEqual([true, true, true]);

    await devnet.setAutomine(false);
    broadcasts.clear();
    const stuck = settle(facilitator, await pay());
    await vi.waitFor(() => expect(broadcasts.size).toBeGreaterThan(2), 20_000);
    await devnet.mine();
    expect(await stuck).toMatchObject({ success: true });
    const forms = [...broadcasts].map((raw) => parseTransaction(raw));
    expect(new Set(forms.map(({ nonce }) => nonce)).size).toBe(1);
    const prices = forms.map(({ gasPrice = 0n }) => gasPrice);
    for (const [index, price] of prices.entries()) {
      const before = prices[index - 1];
      if (before !== undefined) expect(price * 10n).toBeGreaterThan(before * 11n);
    }
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(4_000n);
  });
});

it("a node that overstates tips gets no more than the network's usual cap, and the payment settles", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  const offers: bigint[] = [];
  proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method === "eth_maxPriorityFeePerGas") return { result: numberToHex(parseGwei("900000")) };
    if (method === "eth_sendRawTransaction" && isHex(raw)) {
      offers.push(parseTransaction(raw).maxFeePerGas ?? 0n);
    }
    return ask();
  });
  const facilitator = await start({ network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 } });
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  expect(offers).toEqual([getChainPreset(devnet.chainId).maxFeePerGas]);
});

describe("a gas price above the cap", () => {
  it("keeps payments queued, answers pending without a hash, and settles them when it falls", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { relayer, seller } = devnet.accounts;
    await setBaseFee(here, "500");
    const requests = holdRequests();
    const facilitator = await start({
      network: { fees: { maxFeePerGas: parseGwei("20") } },
      times: { sweepMs: 100 },
      ...requests.options,
    });
    const paid = await pay();
    const pending = settle(facilitator, paid);
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list({ state: "queued" });
      expect(payments).toHaveLength(1);
    }, 20_000);
    requests.end();
    expect(await pending).toMatchObject({
      success: false,
      errorReason: "settlement_pending",
      transaction: "",
    });
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(0);
    await setBaseFee(here, "1");
    await vi.waitFor(
      async () => expect(await settle(facilitator, paid)).toMatchObject({ success: true }),
      20_000,
    );
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });

  it("delays a transaction that was sent before: no form of it exceeds the cap", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { relayer, seller } = devnet.accounts;
    const cap = parseGwei("20");
    const broadcasts = new Set<Hex>();
    let repeats = 0;
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
      if (method === "eth_sendRawTransaction" && isHex(raw)) {
        if (broadcasts.has(raw)) repeats += 1;
        broadcasts.add(raw);
      }
      return ask();
    });
    const requests = holdRequests();
    const facilitator = await start({
      network: { rpcUrls: [proxy.url], blockTimeSeconds: 1, fees: { maxFeePerGas: cap } },
      times: { resendMs: 50, replaceMs: 100 },
      ...requests.options,
    });
    await devnet.setAutomine(false);
    const paid = await pay();
    const first = settle(facilitator, paid);
    await vi.waitFor(() => expect(broadcasts.size).toBeGreaterThan(0), 20_000);
    requests.end();
    const pending = await first;
    expect(pending).toMatchObject({ errorReason: "settlement_pending" });
    expect(pending.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    await devnet.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("500") });
    await devnet.client.mine({ blocks: 1 });
    repeats = 0;
    // At the cap there is nothing to raise: the same form is sent again and again.
    await vi.waitFor(() => expect(repeats).toBeGreaterThan(3), 20_000);
    const offers = [...broadcasts].map((raw) => parseTransaction(raw).maxFeePerGas ?? 0n);
    expect(offers.every((offer) => offer <= cap)).toBe(true);
    expect((await facilitator.payments.list({ state: "submitted" })).payments).toHaveLength(1);

    await devnet.setAutomine(true);
    await setBaseFee(here, "1");
    await vi.waitFor(
      async () => expect(await settle(facilitator, paid)).toMatchObject({ success: true }),
      20_000,
    );
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(1);
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });
});
