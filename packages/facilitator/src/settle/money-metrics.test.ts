import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { runOperation } from "../operators/run-operation.ts";
import { statsOperation } from "../stats/stats-operation.ts";
import { becomes, idInLedger, useRefundingDevnet, withFloat } from "../testing/refunding-devnet.ts";
import { reserve, settle } from "../testing/settling-actions.ts";
import { engines } from "../testing/settling-devnet.ts";
import { createMoneyMetrics } from "./money-metrics.ts";

const begin = useRefundingDevnet();
const timeout = 120_000;

/** Values of a metric in a scrape, by route. */
async function valuesOf(registry: Registry, name: string): Promise<Record<string, number>> {
  const metric = await registry.getSingleMetric(name)?.get();
  return Object.fromEntries(
    (metric?.values ?? []).map(({ labels, value }) => [String(labels.route ?? ""), value]),
  );
}

describe.each(engines)("metrics of money, on %s", (engine) => {
  it(
    "have income, refunds and gas by route",
    async () => {
      const here = await begin(engine);
      const facilitator = await here.start(withFloat);
      const sold = { route: "GET /weather", resource: "/weather", wire: "x402v2" } as const;
      const paid = await here.pay();
      const reservation = await reserve(facilitator, paid, sold);
      expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
      await facilitator.deliver(reservation);
      const payment = await idInLedger(facilitator, paid);
      const { metrics } = facilitator;
      expect(await valuesOf(metrics, "coinslot_income_units_total")).toEqual({
        "GET /weather": 1_000,
      });
      const gas = (await valuesOf(metrics, "coinslot_gas_wei_total"))[""] ?? 0;
      expect(gas).toBeGreaterThan(0);
      expect(await valuesOf(metrics, "coinslot_gas_share_wei_total")).toEqual({
        "GET /weather": gas,
      });

      const refund = await facilitator.refunds.create({
        payment,
        amount: 400n,
        idempotencyKey: "one",
      });
      await becomes(facilitator, here, refund, { state: "final" });
      await expect
        .poll(() => valuesOf(metrics, "coinslot_refunded_units_total"))
        .toEqual({ "GET /weather": 400 });
      const totals = await runOperation(here.ledger.url, statsOperation, { by: ["route"] });
      expect(totals.money).toEqual([
        {
          route: "GET /weather",
          network: here.devnet.network,
          asset: here.devnet.token.toLowerCase(),
          ...{ payments: 1, charges: 0, income: 1_000n, refunds: 1, refunded: 400n },
        },
      ]);
      expect(totals.gas).toMatchObject([{ transactions: 2 }]);
      // It is no sale.
      expect(await valuesOf(metrics, "coinslot_income_units_total")).toEqual({
        "GET /weather": 1_000,
      });
    },
    timeout,
  );
});

describe("sums of money", () => {
  const sale = { network: "eip155:9745", asset: "0xaa", routeId: 1 } as const;

  it("wait for the name of their route, so that none goes back", async () => {
    const registry = new Registry();
    const money = createMoneyMetrics(registry);
    let isAway = true;
    money.nameRoutes(async () => {
      if (isAway) throw new Error("away");
      return new Map([[1, "GET /a"]]);
    });
    money.income(sale, 5n);
    expect(await valuesOf(registry, "coinslot_income_units_total")).toEqual({});
    isAway = false;
    money.income(sale, 2n ** 70n);
    expect(await valuesOf(registry, "coinslot_income_units_total")).toEqual({
      "GET /a": Number(2n ** 70n),
    });
  });

  it("keep their route when ids mean others, in a ledger that was restored", async () => {
    const registry = new Registry();
    const money = createMoneyMetrics(registry);
    money.nameRoutes(async () => new Map([[1, "GET /a"]]));
    money.income(sale, 5n);
    await registry.metrics();
    money.nameRoutes(async () => new Map([[1, "GET /b"]]));
    money.income(sale, 7n);
    expect(await valuesOf(registry, "coinslot_income_units_total")).toEqual({
      "GET /a": 5,
      "GET /b": 7,
    });
  });

  it("are bounded in number", async () => {
    const registry = new Registry();
    const money = createMoneyMetrics(registry);
    for (let index = 0; index < 5_000; index += 1) {
      money.income({ ...sale, asset: `0x${index}`, routeId: null }, 1n);
    }
    const metric = await registry.getSingleMetric("coinslot_income_units_total")?.get();
    expect(metric?.values).toHaveLength(2_000);
  });
});
