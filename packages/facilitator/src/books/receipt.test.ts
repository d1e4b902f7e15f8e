import { expect, it } from "vitest";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import { authorization, hash, inclusion } from "../testing/ledger-payments.ts";
import { receiptOf } from "./receipt.ts";
import { receiptPage } from "./receipt-page.ts";

const payment: LedgerPayment = {
  id: "0190",
  kind: "eip3009",
  authorization: authorization({ asset: "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb" }),
  value: 1_500n,
  validBefore: 1n,
  state: "confirmed",
  fingerprint: "",
  keyHash: undefined,
  unusedAtBlock: undefined,
  transactionId: undefined,
  attempts: 1,
  runs: 1,
  settlesAlone: false,
  inclusion,
  reason: undefined,
  createdAt: 0,
  queuedAt: 0,
  submittedAt: 0,
  confirmedAt: 1_000,
  finalAt: undefined,
  deliveredAt: 2_000,
  refundStartedAt: undefined,
  refundOf: undefined,
  closedAt: undefined,
  isPruned: false,
};
/** Markup, and a mark that reorders the text behind it. */
const hostile = `</dd><script src="//evil">'\u202e`;

it("a receipt has amount, transaction and refunds, and says whether it is final", () => {
  const refunds = [{ value: 500n, transaction: hash(7), confirmedAt: 3_000 }];
  expect(receiptOf(payment, { route: "GET /a", refunds })).toMatchObject({
    ...{ state: "pending", amount: "0.0015", value: "1500", token: "USDT0", route: "GET /a" },
    ...{ transaction: inclusion.transactionHash, paidAt: "1970-01-01T00:00:01.000Z" },
    refunds: [{ amount: "0.0005", value: "500", transaction: hash(7) }],
  });
  expect(receiptOf({ ...payment, finalAt: 1 })).toMatchObject({ state: "final", route: null });
});

it("a payment that is not confirmed has no receipt", () => {
  for (const state of ["reserved", "queued", "submitted", "failed", "released"] as const) {
    expect(receiptOf({ ...payment, state })).toBeUndefined();
  }
});

it("a page of a receipt has no script, asks nobody, and shows hostile texts as they are", () => {
  const sold = { route: hostile, resource: hostile, payTo: hostile };
  const receipt = receiptOf(payment, sold);
  if (receipt === undefined) throw new Error("It has no receipt");
  const page = receiptPage(receipt);
  expect(page).toContain("<h1>0.0015 USDT0</h1>");
  expect(page).toContain("default-src 'none'");
  expect(page).not.toMatch(/<script|<link|<img|\u202e/);
  expect(page).toContain("&lt;/dd&gt;&lt;script src=&quot;//evil&quot;&gt;&#39;\\u{202e}");
});
