import { systemClock } from "@coinslot/chain";
import { maxHandlerRuns } from "@coinslot/protocol";
import { describe, expect, it, vi } from "vitest";
import { readChannel } from "../../ledger/channels/open-channel.ts";
import {
  createVoucherBuyer,
  price,
  repeatOf,
  runOf,
  salesForEachTest,
} from "../../testing/sales-scene.ts";
import { engines } from "../../testing/settling-devnet.ts";

describe.each(engines)("a voucher that comes again, on %s", (engine) => {
  const scene = salesForEachTest(engine);

  it("a voucher whose answer was delivered is corrected, by every process", async () => {
    const second = await scene.shared.join("second");
    const sales = scene.open(scene.first);
    await scene.buy(sales, 10n);
    const request = await scene.buyer.present(10n);
    expect(await sales.admit(request)).toMatchObject({ state: "corrected" });
    // The mark is in the memory of the first process: the second one runs nothing meanwhile.
    const other = scene.open(second);
    expect(["busy", "corrected"]).toContain((await other.admit(request)).state);
    await sales.close();
    expect(await other.admit(request)).toMatchObject({ state: "corrected" });
  });

  it("a voucher whose answer was lost is served again free, twice at most, and then corrected", async () => {
    const sales = scene.open(scene.first);
    const request = await scene.buyer.present(10n);
    const charge = await runOf(await sales.admit(request)).charge({ amount: price });
    if (charge.state !== "charged") throw new Error("Not charged");
    await charge.giveUp();
    for (let runs = 1; runs < maxHandlerRuns; runs += 1) {
      const repeat = repeatOf(await sales.admit(request));
      expect(repeat).toMatchObject({ amount: 10n, sealedAnswer: undefined });
      expect(await repeat.beginRun()).toBe(true);
      await repeat.giveUp();
    }
    const last = repeatOf(await sales.admit(request));
    expect(await last.beginRun()).toBe(false);
    expect(last.correction).toMatchObject({ channelState: { chargedCumulativeAmount: 10n } });
    last.deliver();
    expect(await sales.admit(request)).toMatchObject({ state: "corrected" });
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({ charged: 10n });
  });

  it("a voucher of a process that died between charge and answer is served again by the next one", async () => {
    const second = await scene.shared.join("second");
    const request = await scene.buyer.present(10n);
    const died = scene.open(scene.first);
    expect(await runOf(await died.admit(request)).charge({ amount: price })).toMatchObject({
      state: "charged",
    });
    const sales = scene.open(second);
    expect(await sales.admit(request)).toMatchObject({ state: "busy" });
    await scene.shared.silence("first");
    const another = await scene.buyer.present(10n, { fingerprint: "GET /other" });
    expect(await sales.admit(another)).toMatchObject({ state: "corrected" });
    const repeat = repeatOf(await sales.admit(request));
    expect(await repeat.beginRun()).toBe(true);
    repeat.deliver();
    expect(await readChannel(second, scene.buyer.key)).toMatchObject({ charged: 10n });
  });

  it("has its kept answer again under its key, also after the delivery", async () => {
    const sales = scene.open(scene.first);
    const keyHash = "key";
    const request = await scene.buyer.present(10n, { keyHash });
    const sealedAnswer = Buffer.from("sealed");
    const charge = await runOf(await sales.admit(request)).charge({ amount: price, sealedAnswer });
    if (charge.state !== "charged") throw new Error("Not charged");
    charge.deliver();
    const repeat = repeatOf(await sales.admit(request));
    expect(Buffer.from(repeat.sealedAnswer ?? [])).toEqual(sealedAnswer);
    repeat.deliver();
    for (const other of [undefined, "another"]) {
      const without = await scene.buyer.present(10n, { keyHash: other });
      expect(await sales.admit(without)).toMatchObject({ state: "corrected" });
    }
    scene.shared.wait(60_000);
    expect(await sales.admit(request)).toMatchObject({ state: "corrected" });
  });

  it("stays delivered where its buyer leaves while it has the kept answer again", async () => {
    const sales = scene.open(scene.first);
    const request = await scene.buyer.present(10n, { keyHash: "key" });
    const sealedAnswer = Buffer.from("sealed");
    const charge = await runOf(await sales.admit(request)).charge({ amount: price, sealedAnswer });
    if (charge.state !== "charged") throw new Error("Not charged");
    charge.deliver();
    await repeatOf(await sales.admit(request)).giveUp();
    await repeatOf(await sales.admit(request)).giveUp();
    await sales.close();
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({
      last: { isDelivered: true },
    });
  });

  it("is kept in no table that other processes have filled", async () => {
    const second = await scene.shared.join("second");
    const timers: (() => void)[] = [];
    const clock = {
      ...systemClock,
      setTimer(run: () => void) {
        timers.push(run);
        return () => undefined;
      },
    };
    const answerLimits = { bytesInTable: 2_000, bytesPerProcess: 2_000, bytesPerPayer: 2_000 };
    const keep = async (sales: ReturnType<typeof scene.open>, buyer = createVoucherBuyer()) => {
      const keyHash = "key";
      const request = await buyer.present(10n, { keyHash });
      const sealedAnswer = Buffer.alloc(1_000);
      const charge = await runOf(await sales.admit(request)).charge({
        amount: price,
        sealedAnswer,
      });
      if (charge.state !== "charged") throw new Error("Not charged");
      charge.deliver();
      return (await sales.admit(request)).state;
    };
    expect(await keep(scene.open(scene.first, { answerLimits }))).toBe("repeated");
    const sales = scene.open(second, { answerLimits, clock });
    timers[0]?.();
    await vi.waitFor(() => expect(timers.length).toBeGreaterThan(1));
    expect(await keep(sales)).toBe("corrected");
  });
});
