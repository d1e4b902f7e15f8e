import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { inclusion, order, submit, wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { recordOutcomes } from "./record-outcomes.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

const resource = "https://shop.example/weather/oslo";
const sold = { route: "GET /weather/:city", resource, wire: "x402v2" } as const;

describe.each(engines)("names of sold items, on %s", (engine) => {
  const { join, read } = ledgerForEachTest(engine);

  /** The sold item of each payment, the oldest first. */
  const readSales = () =>
    read(sql`
      select scheme, wire, route.name as route, resource.name as resource, pay_to.name as pay_to
      from payments
      left join sold_names route on route.id = route_id
      left join sold_names resource on resource.id = resource_id
      left join sold_names pay_to on pay_to.id = pay_to_id
      order by payments.id
    `);
  const readNames = async () =>
    (await read(sql<{ name: string }>`select name from sold_names order by name`)) as unknown;

  it("are stored with a payment", async () => {
    const ledger = await join("one");
    await reservePayment(ledger, wish({ sold }));
    expect(await readSales()).toEqual([
      {
        scheme: "eip3009",
        wire: "x402v2",
        route: sold.route,
        resource: sold.resource,
        pay_to: order.payTo,
      },
    ]);
  });

  it("are stored once for many payments, over all processes", async () => {
    const [one, two] = [await join("one"), await join("two")];
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        reservePayment(index % 2 ? one : two, wish({ sold, order })),
      ),
    );
    await reservePayment(
      one,
      wish({ order, sold: { ...sold, resource: "https://shop.example/weather/rome" } }),
    );
    const names = [order.payTo, sold.route, resource, "https://shop.example/weather/rome"];
    expect(await readNames()).toEqual(names.sort().map((name) => ({ name })));
    expect(new Set((await readSales()).map((sale) => JSON.stringify(sale))).size).toBe(2);
  });

  it("are cut to the length that an index takes", async () => {
    const ledger = await join("one");
    const long = `${"x".repeat(499)}\u{1F600}${"y".repeat(4_000)}`;
    await reservePayment(ledger, wish({ sold: { ...sold, route: long } }));
    await reservePayment(ledger, wish({ sold: { ...sold, route: long } }));
    const kept = { route: `${"x".repeat(499)}\uFFFD`, resource };
    expect(await readSales()).toMatchObject([kept, kept]);
  });

  it("follow the newest request of a payment that is reserved again", async () => {
    const ledger = await join("one");
    const wanted = wish({ sold });
    const first = await reservePayment(ledger, wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    const { token } = first;
    await releasePayment(ledger, { token, payer: wanted.id.payer, countsAgainstPayer: false });
    await reservePayment(ledger, { ...wanted, sold: { ...sold, route: "GET /tides" } });
    expect(await readSales()).toMatchObject([{ route: "GET /tides" }]);
  });

  it("stay with a failed payment, as does its gas, when it is retried without names", async () => {
    const ledger = await join("one");
    const { sold: _, ...unnamed } = wish({ sold });
    const id = await submit(ledger, { ...unnamed, sold });
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [
      { failed: [{ ids: [id], reason, inclusion, gasShare: 49_598n }] },
    ]);
    const again = await reservePayment(ledger, unnamed);
    expect(again).toMatchObject({ outcome: "reserved", paymentId: id });
    const kept = { route: sold.route, resource, wire: "x402v2", pay_to: order.payTo };
    expect(await readSales()).toMatchObject([kept]);
    expect(await read(sql`select state, cast(gas_share as text) as gas from payments`)).toEqual([
      { state: "reserved", gas: "49598" },
    ]);
  });

  it("stay beside the gas share of our transaction, when another sender executes the payment", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [
      { failed: [{ ids: [id], reason, inclusion, gasShare: 49_598n }] },
    ]);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    expect(await read(sql`select state, cast(gas_share as text) as gas from payments`)).toEqual([
      { state: "confirmed", gas: "49598" },
    ]);
  });

  it("are not stored for a refused payment", async () => {
    const ledger = await join("one");
    const balance = { amount: 5n, blockNumber: 1n };
    expect(await reservePayment(ledger, wish({ sold, balance }))).toMatchObject({
      outcome: "over_committed",
    });
    expect(await readNames()).toEqual([]);
  });
});
