import { describe, expect, it } from "vitest";
import { channelSceneForEachTest } from "../testing/channel-scene.ts";
import { channelReceiptOf } from "../testing/channel-shop.ts";

const scene = channelSceneForEachTest();

describe("a handler that charges less", () => {
  it("is charged the sum of its parts, and the next ceiling is lower", async () => {
    const { buy } = await scene.open((request, response) => {
      const { payment } = request;
      if (payment?.scheme === "batch-settlement") {
        payment.charge(100n);
        payment.charge("150");
      }
      response.send("fine");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({
      chargedAmount: 250n,
      channelState: { chargedCumulativeAmount: 250n },
    });
    expect((await buy(1_250n)).status).toBe(200);
  });

  it("hears that nothing is charged once its answer has gone out", async () => {
    let chargeLate: () => unknown = () => undefined;
    const { buy } = await scene.open((request, response) => {
      const { payment } = request;
      if (payment?.scheme !== "batch-settlement") throw new Error("Not by a channel");
      payment.charge(100n);
      chargeLate = () => payment.charge(100n);
      response.send("fine");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({ chargedAmount: 100n });
    expect(chargeLate()).toBe(false);
  });

  it("throws before any money is involved where a part is no amount, or too much", async () => {
    const thrown: unknown[] = [];
    const { buy } = await scene.open((request, response) => {
      const { payment } = request;
      if (payment?.scheme !== "batch-settlement") throw new Error("Not by a channel");
      for (const part of [1_001n, -1n, Number.NaN, 5, "0.5", "-1", "1e2", undefined]) {
        try {
          payment.charge(part as never);
        } catch (error) {
          thrown.push(error);
        }
      }
      payment.charge(1_000n);
      expect(() => payment.charge(1n)).toThrow(RangeError);
      response.send("fine");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({ chargedAmount: 1_000n });
    expect(thrown).toHaveLength(8);
  });

  it("gives a free answer with a receipt for nothing, and none for a waived request", async () => {
    let isFree = true;
    const { buy, shop, channelId } = await scene.open((request, response) => {
      const { payment } = request;
      if (payment?.scheme !== "batch-settlement" || payment.paymentFlow !== "authorization") return;
      if (isFree) payment.charge(0n);
      else payment.waive();
      response.send("free");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({ chargedAmount: 0n });
    isFree = false;
    expect(channelReceiptOf(await buy(1_000n))).toBeUndefined();
    expect(await shop.chargedOf(channelId)).toBe(0n);
  });

  it.each([
    ["250", 250n],
    ["25%", 250n],
    ["33.3333%", 333n],
    ["$0.0001", 100n],
    ["0", 0n],
  ])("a handler that charges less by the header of the reference: %s", async (amount, charged) => {
    const { buy } = await scene.open((_request, response) => {
      response.setHeader("Settlement-Overrides", JSON.stringify({ amount }));
      response.send("fine");
    });
    const answer = await buy(1_000n);
    expect(channelReceiptOf(answer)).toMatchObject({ chargedAmount: charged });
    expect(answer.headers.has("settlement-overrides")).toBe(false);
  });

  it.each(["1001", "101%", "$1", "much", ""])(
    "charges nothing by the header with %o",
    async (amount) => {
      const { buy, shop, channelId } = await scene.open((_request, response) => {
        response.setHeader("Settlement-Overrides", JSON.stringify({ amount }));
        response.send("secret");
      });
      const answer = await buy(1_000n);
      expect(answer.status).toBe(500);
      expect(await answer.text()).not.toContain("secret");
      expect(await shop.chargedOf(channelId)).toBe(0n);
      expect(shop.errors).toHaveLength(1);
    },
  );
});
