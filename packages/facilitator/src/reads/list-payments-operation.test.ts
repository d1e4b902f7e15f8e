import { CompiledQuery, sql } from "kysely";
import { describe, expect, it } from "vitest";
import type * as z from "zod";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { sumPayments } from "../ledger/maintenance/sum-payments.ts";
import { createRefund } from "../ledger/refunds/create-refund.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { asset, hash, network, order, payer } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { archiveForTest, sellForTest } from "../testing/sold-payments.ts";
import { selectArchivedBy } from "./find-by-text.ts";
import { listPaymentsOperation, type paymentsListArgument } from "./list-payments-operation.ts";

const otherPayer = `0x${"b1".repeat(20)}` as const;
const otherPayTo = `0x${"d1".repeat(20)}` as const;
const otherAsset = `0x${"a1".repeat(20)}` as const;

async function list(ledger: LedgerContext, argument: z.input<typeof paymentsListArgument>) {
  const parsed = listPaymentsOperation.argument.parse(argument);
  if (listPaymentsOperation.access !== "read") throw new Error("not a read");
  return listPaymentsOperation.result.parse(await listPaymentsOperation.run(ledger, parsed));
}

/** Copies the ledger's only payment, by version 2: the copies are newer. */
async function copyPayments(ledger: LedgerContext, rows: number): Promise<void> {
  const copied = (await ledger.db.selectFrom("payments").selectAll().execute())[0];
  if (copied === undefined) throw new Error("not sold");
  const copies = Array.from({ length: rows }, (_, n) => ({
    ...copied,
    // Behind every random id of that millisecond.
    id: `${copied.id.slice(0, 12)}${"f".repeat(16)}${String(n).padStart(16, "0")}`,
    nonce: hash(50_000 + n),
    token: null,
    wire: "x402v2" as const,
  }));
  for (let n = 0; n < rows; n += 250) {
    await ledger.db
      .insertInto("payments")
      .values(copies.slice(n, n + 250))
      .execute();
  }
}

describe.each(engines)("payments.list on %s", (engine) => {
  const { join, wait } = ledgerForEachTest(engine);
  const places = [{ place: "the table" }, { place: "the archive" }];

  it.each(places)("finds a payment of $place by each text that names it", async ({ place }) => {
    const ledger = await join("one");
    const sold = await sellForTest(ledger, { nonce: 0 });
    wait(5);
    const other = await sellForTest(ledger, {
      nonce: 1,
      payer: otherPayer,
      payTo: otherPayTo,
      asset: otherAsset,
      route: "GET /news",
      wire: "mpp",
    });
    const refund = await createRefund(ledger, { payment: sold.paymentId, idempotencyKey: "one" });
    while (await sumPayments(ledger));
    // A payment whose refund is open stays.
    await ledger.db.updateTable("refunds").set({ state: "void" }).execute();
    if (place === "the archive") expect(await archiveForTest(ledger)).toBe(2);
    const texts = [
      [sold.paymentId, "payment", sold],
      [refund.id, "refund", sold],
      [sold.id.nonce, "nonce", sold],
      [sold.inclusion.transactionHash.toUpperCase().replace("0X", "0x"), "transaction", sold],
      [` ${payer.toUpperCase().replace("0X", "0x")} `, "payer", sold],
      [otherPayer, "payer", other],
      [asset, "token", sold],
      [otherAsset, "token", other],
      [order.payTo, "recipient", sold],
      [otherPayTo, "recipient", other],
      ["GET /weather", "route", sold],
      ["NEWS", "route", other],
    ] as const;
    for (const [search, kind, found] of texts) {
      const { matched, payments, nextCursor } = await list(ledger, { search });
      expect({ search, matched, ids: payments.map(({ id }) => id), nextCursor }).toEqual({
        search,
        matched: { kind, routes: [] },
        ids: [found.paymentId],
        nextCursor: null,
      });
    }
    const unknown = [
      "GET /nothing",
      "https://shop.example/weather",
      hash(9_999),
      `0x${"99".repeat(20)}`,
      "00".repeat(22),
      "'; --",
    ];
    for (const search of unknown) {
      const { matched, payments } = await list(ledger, { search });
      expect({ matched, payments }).toEqual({
        matched: { kind: "none", routes: [] },
        payments: [],
      });
    }
    expect((await list(ledger, { search: "GET /" })).matched).toEqual({
      kind: "none",
      routes: ["GET /news", "GET /weather"],
    });
    expect(await list(ledger, { search: "  " })).toMatchObject({ matched: null });
    expect((await list(ledger, { search: otherPayer })).payments).toMatchObject([
      {
        route: "GET /news",
        resource: "https://shop.example/news",
        payTo: otherPayTo,
        wire: "mpp",
        value: "10",
        state: "confirmed",
        transaction: other.inclusion.transactionHash,
        isPruned: place === "the archive",
      },
    ]);
  });

  it("applies every filter beside every text", async () => {
    const ledger = await join("one");
    const sold = await sellForTest(ledger, { wire: "mpp" });
    const at = ledger.now();
    const iso = (time: number) => new Date(time).toISOString();
    const texts = [undefined, sold.paymentId, sold.id.nonce, payer, order.payTo, "GET /weather"];
    const fitting = {
      state: "confirmed",
      route: "GET /weather",
      token: asset,
      network,
      wire: "mpp",
      payer,
      from: iso(at),
      to: iso(at + 1),
    } as const;
    const unfitting = {
      state: "failed",
      route: "GET /news",
      token: otherAsset,
      network: "eip155:1",
      wire: "x402v1",
      payer: otherPayer,
      from: iso(at + 1),
      to: iso(at),
    } as const;
    for (const search of texts) {
      for (const name of [
        "state",
        "route",
        "token",
        "network",
        "wire",
        "payer",
        "from",
        "to",
      ] as const) {
        const yes = await list(ledger, { search, [name]: fitting[name] });
        expect({ search, name, count: yes.payments.length }).toEqual({ search, name, count: 1 });
        const no = await list(ledger, { search, [name]: unfitting[name] });
        expect({ search, name, count: no.payments.length }).toEqual({ search, name, count: 0 });
      }
    }
  });

  it("goes on after a page in which a wire was not found", async () => {
    const ledger = await join("one");
    const first = await sellForTest(ledger, { state: "queued", wire: "mpp" });
    await copyPayments(ledger, 2_500);
    const page = await list(ledger, { wire: "mpp" });
    expect(page).toMatchObject({ payments: [], nextCursor: expect.any(String) });
    const next = await list(ledger, { wire: "mpp", cursor: page.nextCursor ?? "" });
    expect(next.payments.map(({ id }) => id)).toEqual([first.paymentId]);
    expect(next.nextCursor).toBeNull();
    expect((await list(ledger, { wire: "x402v2", limit: 7 })).payments).toHaveLength(7);
  });

  it("reads whole payments for those of the page alone, by a wire or a recipient", async () => {
    const ledger = await join("one");
    await sellForTest(ledger, { wire: "x402v2" });
    await copyPayments(ledger, 2_500);
    await ledger.db.updateTable("payments").set({ wire: "x402v2" }).execute();
    const read: Record<string, unknown>[][] = [];
    const db = ledger.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        read.push(result.rows);
        return result;
      },
    });
    const costs: [z.input<typeof paymentsListArgument>, found: number, examined: number][] = [
      [{ wire: "mpp", limit: 50 }, 0, 2_000],
      [{ wire: "mpp", route: "GET /weather", limit: 50 }, 0, 2_000],
      [{ wire: "x402v2", limit: 50 }, 50, 51],
      [{ search: order.payTo, limit: 50 }, 50, 51],
    ];
    for (const [argument, found, examined] of costs) {
      const page = await list({ ...ledger, db }, argument);
      const statements = read.splice(0);
      const rows = statements.flat();
      const whole = rows.filter((row) => Object.keys(row).length > 5);
      expect({ argument, found: page.payments.length }).toEqual({ argument, found });
      expect(whole).toHaveLength(found);
      // The sold names of each found payment, and the days and names of the search.
      expect(rows.length).toBeLessThan(examined + 2 * found + 30);
      expect(statements.length).toBeLessThan(45);
    }
  });

  it("refuses arguments that mean nothing", () => {
    const { argument } = listPaymentsOperation;
    for (const wrong of [
      { state: "sold" },
      { from: "yesterday" },
      { cursor: "'" },
      { limit: 0 },
      { q: 1 },
    ]) {
      expect(argument.safeParse(wrong).success).toBe(false);
    }
  });

  it("looks a hash up in the archive by an index", async () => {
    const ledger = await join("one");
    const { db, dialect } = ledger;
    for (const column of ["nonce", "transaction_hash"] as const) {
      const { sql: text, parameters } = selectArchivedBy(ledger, column, hash(1)).compile();
      const plan = await db.transaction().execute(async (transaction) => {
        const isSqlite = dialect.engine === "sqlite";
        // The test's table has no page.
        if (!isSqlite) await sql`set local enable_seqscan = off`.execute(transaction);
        const { rows } = await transaction.executeQuery<Record<string, unknown>>(
          CompiledQuery.raw(`explain ${isSqlite ? "query plan " : ""}${text}`, [...parameters]),
        );
        return rows.map((row) => String(row.detail ?? row["QUERY PLAN"])).join("\n");
      });
      expect(plan).toMatch(
        column === "nonce" ? /archived_payments_nonce/ : /archived_payments_transaction/,
      );
    }
  });
});
