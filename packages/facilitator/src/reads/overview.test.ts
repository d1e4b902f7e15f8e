import { describe, expect, it, vi } from "vitest";
import type * as z from "zod";
import { writeProcessRelayers } from "../ledger/maintenance/process-relayers.ts";
import { changeStop } from "../ledger/maintenance/stops.ts";
import { sumPayments } from "../ledger/maintenance/sum-payments.ts";
import { createRefund } from "../ledger/refunds/create-refund.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { asset, network, relayer } from "../testing/ledger-payments.ts";
import { runRead as run } from "../testing/run-read.ts";
import { engines } from "../testing/settling-devnet.ts";
import { archiveForTest, sellForTest } from "../testing/sold-payments.ts";
import { listBuyersOperation } from "./buyers-operation.ts";
import { listChainsOperation } from "./chains-operation.ts";
import { listRelayersOperation } from "./relayers-operation.ts";
import { listRoutesOperation } from "./routes-operation.ts";
import type { SellerView } from "./seller-view.ts";
import { todayOperation } from "./today/today-operation.ts";

const buyers = [1, 2, 3, 4, 5].map((n) => `0x${String(n).repeat(40)}` as const);

describe.each(engines)("the operator's overview on %s", (engine) => {
  // Ids have the process's clock, and today is the database's.
  const { join } = ledgerForEachTest(engine, { now: Date.now });

  it("sums sales and income of each route", async () => {
    const ledger = await join("one");
    await sellForTest(ledger, { nonce: 0 });
    await sellForTest(ledger, { nonce: 1, value: 5n });
    await sellForTest(ledger, { nonce: 2, route: "GET /news" });
    await sellForTest(ledger, { state: "queued", route: "GET /news" });
    while (await sumPayments(ledger));
    const { routes } = await run(listRoutesOperation, ledger, {});
    expect(routes).toMatchObject([
      {
        route: "GET /weather",
        sales: 2,
        open: 0,
        income: [{ network, asset, symbol: null, value: "15", amount: null }],
      },
      { route: "GET /news", sales: 1, open: 1 },
    ]);
    const day = new Date().toISOString().slice(0, 10);
    expect(routes[0]).toMatchObject({ lastSaleDay: day, lastSaleAt: expect.stringContaining(day) });
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    expect(await run(listRoutesOperation, ledger, { from: tomorrow })).toEqual({ routes: [] });
  });

  it("lists buyers page by page, whether their payments are archived or not", async () => {
    const ledger = await join("one");
    for (const [nonce, address] of [...buyers, ...buyers].entries()) {
      await sellForTest(ledger, { nonce, payer: address });
      if (nonce === 6) expect(await archiveForTest(ledger)).toBe(7);
      // Ids of one millisecond have no order.
      const soldAt = Date.now();
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(soldAt), { interval: 1 });
    }
    const [sale] = await ledger.db.selectFrom("payments").select(["id", "payer"]).execute();
    await createRefund(ledger, { payment: sale?.id ?? "", idempotencyKey: "one" });
    const found: z.output<typeof listBuyersOperation.result>["buyers"] = [];
    let cursor: string | undefined;
    do {
      const page = await run(listBuyersOperation, ledger, { limit: 2, cursor });
      found.push(...page.buyers);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(found.map(({ address }) => address)).toEqual(buyers);
    for (const each of found) {
      expect(each).toMatchObject({
        payments: 2,
        sales: 2,
        total: [{ value: "20" }],
        refunds: each.address === sale?.payer ? 1 : 0,
        hasCode: false,
        isPartial: false,
        lastPaymentAt: expect.any(String),
      });
    }
    const recent = await run(listBuyersOperation, ledger, { order: "recent", limit: 2 });
    expect(recent.buyers.map(({ address }) => address)).toEqual([buyers[4], buyers[3]]);
    expect(recent.nextCursor).toBeNull();
  });

  it("says what needs a person, the most urgent first", async () => {
    const ledger = await join("one");
    const nothing = await run(todayOperation, ledger, {});
    expect(nothing).toMatchObject({ source: "ledger", attention: [], today: { stages: [] } });
    const sold = await sellForTest(ledger, { nonce: 0 });
    await sellForTest(ledger, { nonce: 1, state: "submitted" });
    await createRefund(ledger, { payment: sold.paymentId, idempotencyKey: "one" });
    await ledger.db.updateTable("refunds").set({ state: "review" }).execute();
    await ledger.db
      .updateTable("transactions")
      .set({ created_at: Date.now() - 3_600_000 })
      .where("state", "=", "open")
      .execute();
    const target = { kind: "route", name: "GET /weather" } as const;
    await changeStop(ledger, { operation: "set", target, reason: "a broken forecast" });
    const today = await run(todayOperation, ledger, {}, sellerView);
    expect(today.attention.map(({ code, subject, count }) => [code, subject, count])).toEqual([
      ["ledger_failing", null, 1],
      ["transaction_stuck", relayer, 2],
      ["disk_nearly_full", null, 1],
      ["relayer_keyless", relayer, 2],
      ["endpoint_failing", "endpoint 1: provider.example", 1],
      ["refunds_review", null, 1],
      ["payments_stopped", "GET /weather", 1],
    ]);
    expect(today).toMatchObject({
      source: "seller",
      today: {
        income: [{ value: "10" }],
        payments: { confirmed: 1, open: 1 },
        refunds: { count: 1, amounts: [{ value: "10" }] },
      },
      lastWeek: { income: [], payments: { confirmed: 0 } },
    });
    expect(today.today.stages.map(({ stage }) => stage)).toContain("confirm");
    expect(Date.parse(today.today.from) - Date.parse(today.lastWeek.from)).toBe(7 * 86_400_000);
  });

  it.each([
    ["sent", "fails_in_blocks", 61, [["refunds_late", 1, "fails_in_blocks"]]],
    ["waiting", "chain", 61, [["refunds_late", 1, "chain"]]],
    ["waiting", "chain", 59, []],
    ["waiting", "float_balance", 61, [["float_low", 1, null]]],
    ["confirmed", null, 61, []],
    ["confirmed", "chain", 61, [["refunds_late", 1, "chain"]]],
  ] as const)("of a refund that is %s, %s, after %s minutes: %j", async (...row) => {
    const [state, cause, minutes, expected] = row;
    const ledger = await join("one");
    const sold = await sellForTest(ledger, { nonce: 0 });
    await createRefund(ledger, { payment: sold.paymentId, idempotencyKey: "one" });
    const created_at = Date.now() - minutes * 60_000;
    await ledger.db.updateTable("refunds").set({ state, cause, created_at }).execute();
    const { attention } = await run(todayOperation, ledger, {});
    const ofRefunds = attention.filter(({ code }) => code !== "relayer_keyless");
    expect(ofRefunds.map(({ code, count, detail }) => [code, count, detail])).toEqual(expected);
  });

  it("takes a percentile for the time that so many payments did not exceed", async () => {
    const ledger = await join("one");
    for (const [nonce, ms] of [10, 500].entries()) {
      const { paymentId } = await sellForTest(ledger, { nonce });
      await ledger.db
        .updateTable("payments")
        .set(({ eb }) => ({ queued_at: eb("created_at", "+", ms) }))
        .where("id", "=", paymentId)
        .execute();
    }
    const { stages } = (await run(todayOperation, ledger, {})).today;
    expect(stages[0]).toEqual({ stage: "handler", count: 2, p50Ms: 10, p99Ms: 500 });
  });

  it.each([
    ["one second ago", -1_000, "active"],
    ["a minute ago", -60_000, "keyless"],
    ["a minute ahead: the clock was put back", 60_000, "keyless"],
  ])("shows the relayer of a process whose heartbeat came %s", async (_when, aheadMs, state) => {
    const ledger = await join("one");
    await sellForTest(ledger, { nonce: 6, state: "submitted" });
    await ledger.db
      .updateTable("processes")
      .set({
        heartbeat_at: Date.now() + aheadMs,
        relayers: writeProcessRelayers([{ network, relayer, isRetiring: false }]),
      })
      .execute();
    const { relayers } = await run(listRelayersOperation, ledger, {});
    expect(relayers).toMatchObject([{ relayer, state }]);
  });

  it("shows relayers and chains, from the ledger alone and with the process's facts", async () => {
    const ledger = await join("one");
    await sellForTest(ledger, { nonce: 6, state: "submitted" });
    await ledger.db.insertInto("chains").values({ network, genesis_hash: "0x01" }).execute();
    const [known] = (await run(listRelayersOperation, ledger, {})).relayers;
    expect(known).toMatchObject({
      ...{ network, relayer, state: "keyless", symbol: "XPL", balance: null, daysLeft: null },
      ...{ inFlight: 1, queued: 0, nextNonce: 7, burnPerDay: "0" },
    });
    const [funded] = (await run(listRelayersOperation, ledger, {}, sellerView)).relayers;
    expect(funded).toMatchObject({ balance: "1500000000000000000", amount: "1.5", isLow: true });
    const ofLedger = await run(listChainsOperation, ledger, {});
    expect(ofLedger).toMatchObject({
      source: "ledger",
      chains: [{ network, name: "Plasma", head: null, endpoints: [], reverted: 0 }],
    });
    const ofSeller = await run(listChainsOperation, ledger, {}, sellerView);
    expect(ofSeller).toMatchObject({
      source: "seller",
      chains: [
        {
          head: { number: 7 },
          endpoints: [{ errorRate: 0.5, lastFailure: "timeout" }, { errorRate: null }],
        },
      ],
    });
  });
});

const sellerView: SellerView = {
  chains: async () => [
    {
      network,
      chainId: 9745,
      head: { number: 7, timestamp: 1_000 },
      sinceReadMs: 5,
      isReachable: true,
      isStalled: false,
      reorganised: 2,
      endpoints: [
        {
          endpoint: 1,
          host: "provider.example",
          state: "resting",
          head: 7,
          isLagging: false,
          latencyMs: 3.4,
          lastFailure: "timeout",
          requests: 4,
          failures: 2,
        },
        {
          endpoint: 2,
          host: "other.example",
          state: "ready",
          head: 7,
          isLagging: false,
          latencyMs: undefined,
          lastFailure: undefined,
          requests: 0,
          failures: 0,
        },
      ],
    },
  ],
  relayers: () => [
    {
      network,
      relayer,
      balance: 1_500_000_000_000_000_000n,
      minimumBalance: 1n,
      warningBalance: 2_000_000_000_000_000_000n,
      signerFault: undefined,
    },
  ],
  obstacles: () => ["Its disk is full"],
  disk: async () => ({ freeBytes: 1, totalBytes: 2 ** 40 }),
};
