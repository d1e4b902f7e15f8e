import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { asset, hash, inclusion, network, payer, submit } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { createBooksReader } from "./books-reader.ts";
import type { BookCheckPage } from "./check-page.ts";

const always = { from: 0, before: 8_640_000_000_000_000 };

describe.each(engines)("the check of the books on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);

  async function check(
    ledger: LedgerContext,
  ): Promise<Pick<BookCheckPage, "faults" | "transfers">> {
    const found: Pick<BookCheckPage, "faults" | "transfers"> = { faults: [], transfers: [] };
    for await (const { faults, transfers } of createBooksReader(ledger).check(always)) {
      found.faults.push(...faults);
      found.transfers.push(...transfers);
    }
    return found;
  }
  const deleteEntries = (ledger: LedgerContext, id: string) =>
    sql`delete from book_entries where source_id = ${id}`.execute(ledger.db);

  it("names a transaction without an entry of its gas, and a payment of another route", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    // As those of the program, it begins with its time.
    const sent = "0b";
    await ledger.db.updateTable("transactions").set({ id: sent }).execute();
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }], {
      ...{ id: sent, inclusion, gasUsed: 1n, gasCost: 3n },
    });
    expect((await check(ledger)).faults).toEqual([]);
    await deleteEntries(ledger, sent);
    await sql`update payments set route_id = 99`.execute(ledger.db);
    expect((await check(ledger)).faults).toMatchObject([
      { fault: "wrong_entry", sourceId: id },
      { fault: "missing_entry", sourceId: sent, transaction: inclusion.transactionHash },
    ]);
  });

  it("lists the transfer of a refund that another transaction has made, and names it without entry", async () => {
    const ledger = await join("one");
    const amount = ledger.dialect.amount.encode(7n);
    await ledger.db
      .insertInto("refunds")
      .values({
        ...{ id: "0a", payment_id: "sale", n: 1, network, asset, payer, nonce: hash(1), amount },
        ...{ requested: null, cause: null, state: "sent", origin: "operator", reason: null },
        ...{ idempotency_key: null, float: asset, valid_before: null, operation_id: null },
        ...{ transaction_hash: hash(2), block_number: 3, block_hash: hash(4), created_at: 1 },
        ...{ next_at: 1, approved_at: null, signed_at: null, confirmed_at: null, final_at: null },
      })
      .execute();
    await ledger.db.updateTable("refunds").set({ state: "final" }).execute();
    const found = await check(ledger);
    expect(found.faults).toEqual([]);
    expect(found.transfers).toMatchObject([
      { kind: "refund", sourceId: "0a", from: asset, to: payer, amount: 7n, isFinal: true },
    ]);
    await deleteEntries(ledger, "0a");
    expect((await check(ledger)).faults).toMatchObject([
      { fault: "missing_entry", sourceId: "0a", transaction: hash(2) },
    ]);
  });
});
