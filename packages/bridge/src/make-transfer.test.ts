import { describe, expect, it } from "vitest";
import type { TransferProgress } from "./index.ts";
import {
  contractOf,
  funds,
  nativeFee,
  usdt,
  usdt0,
  useBridgeWorld,
} from "./testing/bridge-world.ts";

const world = useBridgeWorld();

describe("a transfer", () => {
  it("brings tokens from one chain to another", async () => {
    const { plasma, ethereum, layerZero, buyer, request, balanceOf, createBridge } = world();
    const bridge = createBridge();
    const quote = await bridge.quoteBridge(request);
    expect(quote).toMatchObject({
      bridgeFee: nativeFee,
      feeBasis: "estimate",
      amountSent: 5_000_000n,
      amountReceived: 5_000_000n,
      contract: contractOf("ethereum", "oft"),
    });
    const nativeBefore = await ethereum.client.getBalance({ address: buyer });
    const told: TransferProgress[] = [];

    const result = await bridge.bridge(request, { onProgress: (step) => void told.push(step) });

    expect(told.map(({ state }) => state)).toEqual(["approving", "approved", "sending", "sent"]);
    expect(result).toMatchObject({ bridgeFee: nativeFee, amountReceived: 5_000_000n });
    expect(result.fee).toBeLessThanOrEqual(quote.fee);
    const nativeAfter = await ethereum.client.getBalance({ address: buyer });
    expect(nativeBefore - nativeAfter).toBe(result.fee + result.bridgeFee);
    expect(await balanceOf(ethereum, usdt, buyer)).toBe(funds - 5_000_000n);
    expect(await balanceOf(ethereum, usdt, quote.contract)).toBe(5_000_000n);

    const delivery = bridge.track({ hash: result.hash, confirmations: 1, pollIntervalMs: 20 });
    expect(await layerZero.deliver()).toEqual([result.guid]);
    expect(await delivery).toMatchObject({ state: "delivered", amountReceived: 5_000_000n });
    expect(await balanceOf(plasma, usdt0, buyer)).toBe(5_000_000n);
  });
});
