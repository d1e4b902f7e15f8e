import {
  BridgeError,
  createBridge,
  createTopUp,
  type TopUpOptions,
  usdt0Chains,
} from "@coinslot/bridge";
import { type Budget, createPayingFetch, PaymentError, receiptOf } from "@coinslot/client";
import { type Devnet, type LayerZero, startDevnet, startLayerZero } from "@coinslot/devnet";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { type Address, erc20Abi } from "viem";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import {
  createTestFacilitator,
  priceOfWeather,
  type Seller,
  startSeller,
} from "../support/seller.ts";

/** USDT on Ethereum, where the buyer holds it. The seller takes USDT0 on Plasma. */
const usdt: Address = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
const nativeFee = 100_000_000_000_000n;

let ethereum: Devnet;
let plasma: Devnet;
let layerZero: LayerZero;
let facilitator: CoinslotFacilitator;
let seller: Seller;

beforeAll(async () => {
  [ethereum, plasma] = await Promise.all([
    startDevnet({ chainId: 1 }),
    startDevnet({ chainId: 9745 }),
  ]);
  layerZero = await startLayerZero({
    nativeFee,
    chains: [
      { devnet: ethereum, eid: 30101 },
      { devnet: plasma, eid: 30383 },
    ],
  });
  await layerZero.connect([
    { devnet: ethereum, oft: oftOn("ethereum"), token: usdt, locks: true },
    { devnet: plasma, oft: oftOn("plasma"), token: plasma.token, locks: false },
  ]);
  facilitator = createTestFacilitator(plasma);
  await facilitator.ready();
  seller = await startSeller({ devnet: plasma, facilitator });
});

afterAll(async () => {
  await seller?.close();
  await facilitator?.close();
  await Promise.all([ethereum?.stop(), plasma?.stop()]);
});

/** A buyer per test, who holds USDT on Ethereum and nothing on Plasma. */
let buyers = 0;
let buyer: Devnet["accounts"]["buyer"];

beforeEach(async () => {
  const next = ethereum.accounts.others[buyers++];
  if (next === undefined) throw new Error("The devnet has no more accounts");
  buyer = next;
  await ethereum.mint({ token: usdt, to: buyer.address, amount: 10_000_000n });
});

function oftOn(key: string): Address {
  const chain = usdt0Chains.find((each) => each.key === key);
  const oft = chain?.type === "evm" ? chain.contracts.oft : undefined;
  if (oft === undefined) throw new Error(`The chain table has no OFT on ${key}`);
  return oft;
}

function createTestBridge() {
  return createBridge({
    account: buyer,
    rpcUrl: ethereum.rpcUrl,
    targetRpcUrls: { plasma: plasma.rpcUrl },
    bridgeMaxFee: nativeFee,
  });
}

/** A fetch that pays on Plasma, and brings USDT from Ethereum if `agrees`. */
function createFetch(
  agrees: boolean,
  change: { topUp?: Partial<TopUpOptions>; budget?: Budget } = {},
) {
  const states: string[] = [];
  const topUp = createTopUp({
    bridge: createTestBridge(),
    token: usdt,
    minAmount: 1_000_000n,
    ask({ quote }) {
      states.push(`asked for ${quote.amountSent}`);
      return agrees;
    },
    async onProgress({ state }) {
      states.push(state);
      if (state === "sent") await layerZero.deliver();
    },
    pollIntervalMs: 10,
    ...change.topUp,
  });
  const pay = createPayingFetch({
    account: buyer,
    rpcUrls: { [plasma.network]: plasma.rpcUrl },
    onPayment: ({ state }) => states.push(state),
    budget: change.budget,
    topUp,
  });
  return { pay, states };
}

describe("a buyer who holds USDT on Ethereum", () => {
  it("bridges it to Plasma and spends it there", async () => {
    const bridge = createTestBridge();
    const request = {
      targetChain: "plasma",
      recipient: buyer.address,
      token: usdt,
      amount: 2_000_000n,
    };
    const agreed = await bridge.quoteBridge(request);
    const { hash } = await bridge.bridge(request, { agreed });
    const delivery = bridge.track({ hash, confirmations: 1, pollIntervalMs: 10 });
    await layerZero.deliver();
    await delivery;
    expect(await balanceOf(plasma, buyer.address)).toBe(2_000_000n);

    const pay = createPayingFetch({
      account: buyer,
      rpcUrls: { [plasma.network]: plasma.rpcUrl },
    });
    const response = await pay(`${seller.url}/weather`);

    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ forecast: "sun" });
    expect(receiptOf(response)?.success).toBe(true);
    expect(await balanceOf(plasma, buyer.address)).toBe(2_000_000n - priceOfWeather);
    bridge.close();
  });

  it("gets a prompt when a payment lacks funds, and pays with the bridged funds", async () => {
    const { pay, states } = createFetch(true);

    const response = await pay(`${seller.url}/weather`);

    expect(response.status).toBe(200);
    expect(states).toEqual([
      "asked for 1000000",
      "approving",
      "approved",
      "sending",
      "sent",
      "delivered",
      "booked",
      "signed",
      "sent",
      "settled",
    ]);
    expect(await balanceOf(plasma, buyer.address)).toBe(1_000_000n - priceOfWeather);
    const again = await pay(`${seller.url}/weather`);
    expect(again.status).toBe(200);
    expect(states.filter((state) => state.startsWith("asked"))).toHaveLength(1);
  });

  it("gets one prompt for two concurrent payments, and pays both", async () => {
    const { pay, states } = createFetch(true);
    const url = `${seller.url}/weather`;
    const responses = await Promise.all([pay(url), pay(url)]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expect(states.filter((state) => state.startsWith("asked"))).toHaveLength(1);
    expect(await balanceOf(plasma, buyer.address)).toBe(1_000_000n - 2n * priceOfWeather);
  });

  it("pays with funds that arrived late, and bridges once", async () => {
    const late = { timeoutMs: 50, onProgress: () => undefined };
    const { pay, states } = createFetch(true, { topUp: late });
    const url = `${seller.url}/weather`;
    await expect(pay(url)).rejects.toMatchObject({ code: "delivery_timeout" });
    await expect(pay(url)).rejects.toMatchObject({ code: "delivery_timeout" });
    await layerZero.deliver();
    expect((await pay(url)).status).toBe(200);
    expect(states.filter((state) => state.startsWith("asked"))).toHaveLength(1);
    expect(await balanceOf(plasma, buyer.address)).toBe(1_000_000n - priceOfWeather);
  });

  it("gets no prompt for an amount above the budget", async () => {
    const spent = { perPayment: "$0.001", perHost: "$0.001", perDay: "$0.001" };
    const { pay, states } = createFetch(true, { budget: spent });
    const url = `${seller.url}/weather`;
    expect((await pay(url)).status).toBe(200);
    const held = await balanceOf(plasma, buyer.address);
    await plasma.client.writeContract({
      account: buyer,
      address: plasma.token,
      abi: erc20Abi,
      functionName: "transfer",
      args: [plasma.accounts.seller.address, held],
    });
    await expect(pay(url)).rejects.toMatchObject({ code: "over_budget" });
    expect(states.filter((state) => state.startsWith("asked"))).toHaveLength(1);
  });

  it("pays nothing, and bridges nothing, when declining", async () => {
    const { pay, states } = createFetch(false);
    const refusal = await pay(`${seller.url}/weather`).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(PaymentError);
    expect(states).toEqual(["asked for 1000000"]);
    expect(await balanceOf(plasma, buyer.address)).toBe(0n);
  });

  it("gets the bridge's error when it fails, and has signed no payment", async () => {
    await layerZero.setNativeFee(ethereum, nativeFee + 1n);
    const { pay, states } = createFetch(true);
    const refusal = await pay(`${seller.url}/weather`).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(BridgeError);
    expect(refusal).toMatchObject({ code: "bridge_fee_above_maximum" });
    expect(states).toEqual(["asked for 1000000"]);
    await layerZero.setNativeFee(ethereum, nativeFee);
  });
});
