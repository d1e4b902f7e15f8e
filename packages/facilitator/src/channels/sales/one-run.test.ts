import { describe, expect, it } from "vitest";
import { readChannel } from "../../ledger/channels/open-channel.ts";
import { createVoucherBuyer, price, runOf, salesForEachTest } from "../../testing/sales-scene.ts";
import { engines } from "../../testing/settling-devnet.ts";

describe.each(engines)("a voucher at many requests, on %s", (engine) => {
  const scene = salesForEachTest(engine);

  it("is charged once by two processes that have it a thousand times at once", async () => {
    const second = await scene.shared.join("second");
    const both = [scene.open(scene.first), scene.open(second)];
    await scene.buy(scene.open(scene.first), 10n);
    const request = await scene.buyer.present(20n);
    const outcomes = await Promise.all(
      Array.from({ length: 1_000 }, async (_, index) => {
        const admission = await both[index % 2]?.admit(request);
        if (admission?.state !== "admitted") return admission?.state;
        const charge = await admission.run.charge({ amount: price });
        if (charge.state === "charged") charge.deliver();
        return charge.state;
      }),
    );
    expect(outcomes.filter((state) => state === "charged")).toHaveLength(1);
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({ charged: 20n });
  });

  it("a voucher with an unsafe method runs one handler in all processes", async () => {
    const second = await scene.shared.join("second");
    const both = [scene.open(scene.first), scene.open(second)];
    await scene.buy(scene.open(scene.first), 10n);
    const request = await scene.buyer.present(20n, { isSafe: false });
    const admissions = await Promise.all(both.map((sales) => sales.admit(request)));
    expect(admissions.map(({ state }) => state).sort()).toEqual(["admitted", "busy"]);
  });

  it("a voucher with a safe method runs after a process died in an unsafe one", async () => {
    const second = await scene.shared.join("second");
    await scene.buy(scene.open(scene.first), 10n);
    runOf(await scene.open(scene.first).admit(await scene.buyer.present(20n, { isSafe: false })));
    const sales = scene.open(second);
    expect(await sales.admit(await scene.buyer.present(20n))).toMatchObject({ state: "busy" });
    await scene.shared.silence("first");
    expect(await scene.buy(sales, 20n)).toMatchObject({ state: "charged" });
  });

  it("waits for the channel's request, and is corrected when its turn comes", async () => {
    const sales = scene.open(scene.first);
    const request = await scene.buyer.present(10n);
    const run = runOf(await sales.admit(request));
    const second = sales.admit(request);
    const other = createVoucherBuyer();
    runOf(await sales.admit(await other.present(10n)));
    const charge = await run.charge({ amount: price });
    if (charge.state !== "charged") throw new Error("Not charged");
    charge.deliver();
    expect(await second).toMatchObject({
      state: "corrected",
      channelState: { chargedCumulativeAmount: 10n },
    });
  });

  it("is turned away where the queue is full, or the wait was too long", async () => {
    const sales = scene.open(scene.first, { maxWaiting: 2, maxWaitMs: 50 });
    const request = await scene.buyer.present(10n);
    const run = runOf(await sales.admit(request));
    const waiting = [sales.admit(request), sales.admit(request)];
    expect(await sales.admit(request)).toEqual({ state: "busy", retryAfterSeconds: 1 });
    for (const each of waiting) expect(await each).toMatchObject({ state: "busy" });
    await run.drop({ isFree: false });
    expect(await scene.buy(sales, 10n)).toMatchObject({ state: "charged" });
  });

  it("a voucher whose buyer leaves in the queue runs nothing", async () => {
    const sales = scene.open(scene.first);
    const run = runOf(await sales.admit(await scene.buyer.present(10n)));
    const second = sales.admit(await scene.buyer.present(10n, { isGone: () => true }));
    await run.drop({ isFree: false });
    expect(await second).toEqual({ state: "gone" });
    expect(await scene.buy(sales, 10n)).toMatchObject({ state: "charged" });
  });
});
