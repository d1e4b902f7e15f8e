import { describe, expect, it } from "vitest";
import type { TransferProgress } from "../index.ts";
import { funds, usdt, useBridgeWorld } from "../testing/bridge-world.ts";

const world = useBridgeWorld();

describe("an allowance", () => {
  it("is used if it exists", async () => {
    const { request, createBridge, approve, allowance } = world();
    await approve(8_000_000n);
    const steps: TransferProgress[] = [];
    await createBridge().bridge(request, { onProgress: (step) => void steps.push(step) });
    expect(steps.map(({ state }) => state)).toEqual(["sending", "sent"]);
    expect(await allowance()).toBe(3_000_000n);
  });

  it("is reset to zero first where the token requires it, and never exceeds the amount to send", async () => {
    const { request, createBridge, approve, allowance } = world();
    await approve(1n);
    const bridge = createBridge();
    expect((await bridge.quoteBridge(request)).feeBasis).toBe("estimate");
    const steps: TransferProgress[] = [];
    await bridge.bridge(request, { onProgress: (step) => void steps.push(step) });
    expect(steps.map(({ state }) => state)).toEqual([
      "approving",
      "approved",
      "approving",
      "approved",
      "sending",
      "sent",
    ]);
    expect(await allowance()).toBe(0n);
  });

  it("survives a crash before the send: the same call continues from there", async () => {
    const { ethereum, request, createBridge, allowance, countSent, balanceOf, buyer } = world();
    const crash = new Error("the process is gone");
    const interrupted = createBridge().bridge(request, {
      onProgress({ state }) {
        if (state === "sending") throw crash;
      },
    });
    await expect(interrupted).rejects.toBe(crash);
    expect(await allowance()).toBe(5_000_000n);
    expect(await countSent()).toBe(1);

    await createBridge().bridge(request);

    expect(await countSent()).toBe(2);
    expect(await allowance()).toBe(0n);
    expect(await balanceOf(ethereum, usdt, buyer)).toBe(funds - 5_000_000n);
  });

  it("survives a crash between its reset and its renewal", async () => {
    const { request, createBridge, approve, allowance, countSent } = world();
    await approve(1n);
    const crash = new Error("the process is gone");
    const interrupted = createBridge().bridge(request, {
      onProgress({ state }) {
        if (state === "approved") throw crash;
      },
    });
    await expect(interrupted).rejects.toBe(crash);
    expect(await allowance()).toBe(0n);
    await createBridge().bridge(request);
    expect(await countSent()).toBe(4);
  });
});
