import { sql } from "kysely";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { readChannel } from "../../ledger/channels/open-channel.ts";
import { createChannelMetrics } from "../../settle/channel-metrics.ts";
import { createVoucherBuyer, price, runOf, salesForEachTest } from "../../testing/sales-scene.ts";
import { engines } from "../../testing/settling-devnet.ts";

describe.each(engines)("the charge of a voucher, on %s", (engine) => {
  const scene = salesForEachTest(engine);

  it("a charge that was dropped buys again, and free runs have a limit for each signer", async () => {
    const sales = scene.open(scene.first);
    for (let round = 0; round < 3; round += 1) {
      await runOf(await sales.admit(await scene.buyer.present(10n))).drop({ isFree: true });
    }
    expect(await sales.admit(await scene.buyer.present(10n))).toEqual({
      state: "payer_limited",
      retryAfterSeconds: 1,
    });
    const other = createVoucherBuyer();
    runOf(await sales.admit(await other.present(10n)));
    scene.shared.wait(1_000);
    expect(await scene.buy(sales, 10n)).toMatchObject({ state: "charged" });
  });

  it("a charge that is taken back after its handler ran for nothing is limited as one that was dropped", async () => {
    const sales = scene.open(scene.first);
    for (let round = 0; round < 3; round += 1) {
      const run = runOf(await sales.admit(await scene.buyer.present(10n)));
      const charge = await run.charge({ amount: price });
      if (charge.state !== "charged") throw new Error("Not charged");
      await charge.lower(0n, { isFree: true });
    }
    expect(await sales.admit(await scene.buyer.present(10n))).toMatchObject({
      state: "payer_limited",
    });
  });

  it("raises its signer's limit by no run that cost nothing, or was taken back", async () => {
    const sales = scene.open(scene.first);
    await runOf(await sales.admit(await scene.buyer.present(10n))).drop({ isFree: true });
    for (let round = 0; round < 8; round += 1) await scene.buy(sales, 10n, 0n);
    for (let round = 0; round < 2; round += 1) {
      const charge = await runOf(await sales.admit(await scene.buyer.present(10n))).charge({
        amount: price,
      });
      if (charge.state !== "charged") throw new Error("Not charged");
      expect(await charge.lower(0n, { isFree: true })).toBe(true);
    }
    expect(await sales.admit(await scene.buyer.present(10n))).toMatchObject({
      state: "payer_limited",
    });
  });

  it("charges no more than it covers, and no part of less than nothing", async () => {
    const sales = scene.open(scene.first);
    for (const amount of [11n, -1n]) {
      const run = runOf(await sales.admit(await scene.buyer.present(10n)));
      await expect(run.charge({ amount })).rejects.toThrow(RangeError);
    }
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({ charged: 0n });
    expect(await scene.buy(sales, 10n, 0n)).toMatchObject({ state: "charged", amount: 0n });
    expect(await scene.buy(sales, 10n)).toMatchObject({ state: "charged", amount: 10n });
  });

  it("charges nothing above what a withdrawal leaves, and nothing during a refund", async () => {
    const sales = scene.open(scene.first);
    await scene.buy(sales, 10n);
    const run = runOf(await sales.admit(await scene.buyer.present(20n)));
    const less = scene.first.dialect.amount.encode(15n);
    await scene.shared.read(sql`update channels set secure = ${less}`);
    expect(await run.charge({ amount: price })).toMatchObject({
      state: "corrected",
      channelState: { chargedCumulativeAmount: 10n },
    });
    expect(await sales.admit(await scene.buyer.present(20n))).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
    });
    const all = scene.first.dialect.amount.encode(1_000n);
    await scene.shared.read(sql`update channels set secure = ${all}`);
    const next = runOf(await sales.admit(await scene.buyer.present(20n)));
    await scene.shared.read(sql`update channels set refunding = 1`);
    expect(await next.charge({ amount: price })).toMatchObject({ state: "corrected" });
    expect(await sales.admit(await scene.buyer.present(20n))).toMatchObject({ state: "busy" });
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({ charged: 10n });
  });

  it("a charge that was charged in advance is charged less, or nothing, while it is the last", async () => {
    const registry = new Registry();
    const sales = scene.open(scene.first, { metrics: createChannelMetrics(registry) });
    const charge = await runOf(await sales.admit(await scene.buyer.present(10n))).charge({
      amount: price,
    });
    if (charge.state !== "charged") throw new Error("Not charged");
    expect(await charge.lower(4n)).toBe(true);
    charge.deliver();
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({ charged: 4n });
    const failed = await runOf(await sales.admit(await scene.buyer.present(14n))).charge({
      amount: price,
    });
    if (failed.state !== "charged") throw new Error("Not charged");
    expect(await failed.lower(0n, { isFree: true })).toBe(true);
    expect(await failed.lower(0n, { isFree: true })).toBe(false);
    expect(await readChannel(scene.first, scene.buyer.key)).toMatchObject({
      charged: 4n,
      last: undefined,
    });
    const read = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values;
    const asset = scene.buyer.config.token;
    const labels = { network: scene.buyer.key.network, asset, route: "GET /weather" };
    expect(await read("coinslot_channels_charged_units_total")).toEqual([{ labels, value: 20 }]);
    expect(await read("coinslot_channels_lowered_units_total")).toEqual([{ labels, value: 16 }]);
    expect(await scene.buy(sales, 14n)).toMatchObject({ state: "charged" });
  });
});
