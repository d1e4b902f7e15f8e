import { createPublicClient, http } from "viem";
import { describe, expect, it } from "vitest";
import type { TransferProgress } from "../index.ts";
import {
  contractOf,
  funds,
  nativeFee,
  usdt,
  usdt0,
  useBridgeWorld,
} from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";

const world = useBridgeWorld();
const adapter = contractOf("ethereum", "oft");

describe("a transfer", () => {
  it("brings tokens from one chain to another", async () => {
    const { plasma, ethereum, layerZero, buyer, request, balanceOf, createBridge } = world();
    const bridge = createBridge();
    const quote = await bridge.quoteBridge(request);
    const nativeBefore = await ethereum.client.getBalance({ address: buyer });
    const steps: TransferProgress[] = [];

    const result = await bridge.bridge(request, { onProgress: (step) => void steps.push(step) });

    expect(steps.map(({ state }) => state)).toEqual(["approving", "approved", "sending", "sent"]);
    expect(steps.at(-1)).toEqual({ state: "sent", hash: result.hash, guid: result.guid });
    expect(result).toMatchObject({ bridgeFee: nativeFee, amountReceived: 5_000_000n });
    expect(result.fee).toBeLessThanOrEqual(quote.fee);
    const nativeAfter = await ethereum.client.getBalance({ address: buyer });
    expect(nativeBefore - nativeAfter).toBe(result.fee + result.bridgeFee);
    expect(await balanceOf(ethereum, usdt, buyer)).toBe(funds - 5_000_000n);
    expect(await balanceOf(ethereum, usdt, adapter)).toBe(5_000_000n);

    expect(await layerZero.deliver()).toEqual([result.guid]);
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(5_000_000n);
  });

  it("returns the other way, where no approval is needed", async () => {
    const { plasma, ethereum, layerZero, buyer, request, balanceOf, createBridge } = world();
    await createBridge().bridge({ ...request, amount: 5_000_000n });
    await layerZero.deliver();
    const back = createBridge({}, { rpcUrl: plasma.rpcUrl });
    const steps: TransferProgress[] = [];

    const result = await back.bridge(
      { targetChain: "ethereum", recipient: buyer, token: usdt0, amount: 2_000_000n },
      { onProgress: (step) => void steps.push(step) },
    );

    expect(steps.map(({ state }) => state)).toEqual(["sending", "sent"]);
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(3_000_000n);
    expect(await layerZero.deliver()).toEqual([result.guid]);
    expect(await balanceOf(ethereum, usdt, buyer)).toBe(funds - 3_000_000n);
  });

  it("takes a viem client instead of a URL", async () => {
    const { ethereum, request, createBridge, allowance } = world();
    const client = createPublicClient({ transport: http(ethereum.rpcUrl), pollingInterval: 20 });
    const result = await createBridge({}, { client }).bridge(request);
    const receipt = await ethereum.client.getTransactionReceipt({ hash: result.hash });
    expect(receipt.status).toBe("success");
    expect(await allowance()).toBe(0n);
  });

  it("waits for an earlier concurrent one", async () => {
    const { request, createBridge, layerZero, allowance } = world();
    const bridge = createBridge();
    const results = await Promise.all([bridge.bridge(request), bridge.bridge(request)]);
    expect(await layerZero.deliver()).toEqual(results.map(({ guid }) => guid));
    expect(await allowance()).toBe(0n);
  });

  it("pays a pool's fee, and holds to the quote", async () => {
    const { ethereum, plasma, layerZero, buyer, request, configure } = world();
    const { balanceOf, createBridge } = world();
    await configure(ethereum, adapter, { functionName: "setFeeBps", args: [3n] });
    const bridge = createBridge();
    expect(await bridge.quoteBridge(request)).toMatchObject({
      amountSent: 5_000_000n,
      amountReceived: 4_998_500n,
    });
    const { amountReceived } = await bridge.bridge(request);
    await layerZero.deliver();
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(amountReceived);
  });

  it("uses another contract when it is named", async () => {
    const { request, createBridge } = world();
    const oftContractAddress = adapter.toLowerCase();
    const quote = await createBridge().quoteBridge({ ...request, oftContractAddress });
    expect(quote.contract).toBe(adapter);
  });
});

describe("an amount with more decimals than travel", () => {
  const oft = "0x00000000000000000000000000000000000f0000";
  const unit = 1_000_000_000_000n;

  /** A token of 18 decimals on Ethereum, of which 6 travel, and an OFT for it. */
  async function prepare() {
    const { ethereum, layerZero, buyer, request } = world();
    const token = await ethereum.deployToken({ decimals: 18 });
    await ethereum.mint({ token, to: buyer, amount: 10n * unit });
    await layerZero.adapt({ devnet: ethereum, token, oft, peerEid: 30383 });
    return { ...request, token, oftContractAddress: oft };
  }

  it("leaves the remainder in the account", async () => {
    const request = await prepare();
    const { ethereum, buyer, balanceOf, createBridge } = world();
    const amount = 9n * unit + unit / 1000n;
    const { amountSent } = await createBridge().bridge({ ...request, amount });
    expect(amountSent).toBe(9n * unit);
    expect(await balanceOf(ethereum, request.token, buyer)).toBe(unit);
  });

  it("is refused if rounding leaves nothing, or too little", async () => {
    const request = await prepare();
    const quoteOf = (amount: bigint) =>
      world()
        .createBridge()
        .quoteBridge({ ...request, amount });
    await expectBridgeError(quoteOf(unit - 1n), "amount_too_small");
    await expectBridgeError(quoteOf(2n * unit - 1n), "loss_too_large");
    expect((await quoteOf(unit)).amountReceived).toBe(unit);
  });
});
