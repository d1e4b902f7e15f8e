import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { inclusion, order, wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { createRefund } from "./create-refund.ts";
import { moveRefund } from "./move-refund.ts";
import { findRefundsOf } from "./refund-row.ts";

describe.each(engines)("a request for a refund on %s", (engine) => {
  const { join, read } = ledgerForEachTest(engine);

  it("is refused alike on both engines where a text has a NUL", async () => {
    const ledger = await join("one");
    const request = { payment: "a", reason: "late", idempotencyKey: "1" };
    for (const changed of [{ payment: "a\0" }, { reason: "\0" }, { idempotencyKey: "1\0" }]) {
      await expect(createRefund(ledger, { ...request, ...changed })).rejects.toMatchObject({
        reason: "invalid_request",
      });
    }
    await expect(createRefund(ledger, request)).rejects.toMatchObject({
      reason: "unknown_payment",
    });
  });

  it("is moved by the transaction that it was read with, and by no earlier one", async () => {
    const ledger = await join("one");
    const reserved = await reservePayment(ledger, wish({ order }));
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const payment = reserved.paymentId;
    await recordOutcomes(ledger, [{ confirmed: { ids: [payment], inclusion } }]);
    await read(sql`update payments set token = null`);
    await createRefund(ledger, { payment, idempotencyKey: "1" });
    const readRow = async () => {
      const [row] = await findRefundsOf(ledger, payment);
      if (row === undefined) throw new Error("The refund is lost");
      return row;
    };
    const paid = { state: "sent", cause: "operator_paid" } as const;
    const [first, second] = [`0x${"01".repeat(32)}`, `0x${"02".repeat(32)}`] as const;
    await moveRefund(ledger, await readRow(), { ...paid, transaction_hash: first });
    // A worker freezes here. Another one finds the transaction gone. The operator names the next.
    const before = await readRow();
    await moveRefund(ledger, before, { state: "manual", transaction_hash: null });
    await moveRefund(ledger, await readRow(), { ...paid, transaction_hash: second });
    expect(await moveRefund(ledger, before, { state: "manual", transaction_hash: null })).toBe(
      false,
    );
    expect(await readRow()).toMatchObject({ state: "sent", transaction_hash: second });
  });

  it("never exceeds an archived payment, and is refused in words, by twelve at once", async () => {
    const ledger = await join("one");
    const reserved = await reservePayment(ledger, wish({ order }));
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const id = reserved.paymentId;
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    const bytes = (digits: string) => Buffer.from(digits, "hex");
    await read(sql`
      insert into archived_payments (id, network, asset, payer, nonce, value, valid_before, state,
        runs, carried, created_at, confirmed_at, final_at, block_number, scheme)
      select id, network, ${bytes("aa".repeat(20))}, ${bytes("bb".repeat(20))},
        ${bytes("01".repeat(32))}, value, valid_before, state,
        runs, carried, created_at, confirmed_at, created_at, block_number, scheme
      from payments where id = ${id}`);
    await read(sql`delete from orders where payment_id = ${id}`);
    await read(sql`delete from payments where id = ${id}`);
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        createRefund(ledger, { payment: id, amount: 3n, idempotencyKey: `${index}` }).then(
          () => "begun",
          (error: unknown) =>
            typeof error === "object" && error !== null && "reason" in error ? error.reason : error,
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === "begun")).toHaveLength(3);
    expect(outcomes.filter((outcome) => outcome === "exceeds_payment")).toHaveLength(9);
  });
});
