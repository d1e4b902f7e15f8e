import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { accounts } from "../ledger/books-schema.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import {
  asset,
  hash,
  inclusion,
  network,
  payer,
  queue,
  submit,
} from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";

describe.each(engines)("entries of the books on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);
  const block = { number: inclusion.blockNumber, hash: inclusion.blockHash };

  it("stand on the database's clock, and after a closed period in the open one", async () => {
    const ledger = await join("one");
    const times = async () =>
      (await ledger.db.selectFrom("book_entries").select("posted_at").orderBy("id").execute()).map(
        ({ posted_at }) => posted_at,
      );
    const id = await queue(ledger);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    const [postedAt = 0] = await times();
    expect(Math.abs(postedAt - Date.now())).toBeLessThan(60_000);
    const closedTo = postedAt + 86_400_000;
    await ledger.db
      .insertInto("book_periods")
      .values({ closed_to: closedTo, closed_at: postedAt, digest: null })
      .execute();
    await undoBlocks(ledger, { network, blocks: [block] });
    expect(await times()).toEqual([postedAt, closedTo]);
  });

  it("record a refund that no payment of the engine has made", async () => {
    const ledger = await join("one");
    const row = { network, asset, payer, nonce: hash(1), requested: null, cause: null } as const;
    const amount = ledger.dialect.amount.encode(7n);
    await ledger.db
      .insertInto("refunds")
      .values({
        ...{ id: "refund", payment_id: "sale", n: 1, ...row, amount, state: "manual" },
        ...{ origin: "operator", reason: null, idempotency_key: null, float: null },
        ...{ valid_before: null, operation_id: null, transaction_hash: null, block_number: null },
        ...{ block_hash: null, created_at: 1, next_at: 1, approved_at: null, signed_at: null },
        ...{ confirmed_at: null, final_at: null },
      })
      .execute();
    for (const state of ["sent", "confirmed", "sent", "confirmed", "final"] as const) {
      await ledger.db.updateTable("refunds").set({ state }).execute();
    }
    const entries = await ledger.db
      .selectFrom("book_entries")
      .select(["debit", "credit", "source_id", "amount"])
      .orderBy("id")
      .execute();
    const { refunds, float } = accounts;
    const posted = { source_id: "refund", amount };
    expect(entries).toEqual([
      { ...posted, debit: refunds, credit: float },
      { ...posted, debit: float, credit: refunds },
      { ...posted, debit: refunds, credit: float },
    ]);
  });

  it("take back the gas of a transaction that was final, and post it once when it is settled again", async () => {
    const ledger = await join("one");
    await submit(ledger);
    const amount = ledger.dialect.amount.encode(7n);
    for (const state of ["settled", "final", "open", "settled", "final"] as const) {
      const cost = state === "settled" ? { gas_cost: amount } : {};
      await ledger.db
        .updateTable("transactions")
        .set({ state, ...cost })
        .execute();
    }
    const entries = await ledger.db
      .selectFrom("book_entries")
      .select(["debit", "credit", "amount"])
      .orderBy("id")
      .execute();
    const { gas, relayers } = accounts;
    expect(entries).toEqual([
      { debit: gas, credit: relayers, amount },
      { debit: relayers, credit: gas, amount },
      { debit: gas, credit: relayers, amount },
    ]);
  });

  it("are never changed", async () => {
    const ledger = await join("one");
    const id = await queue(ledger);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    await expect(sql`update book_entries set debit = 2`.execute(ledger.db)).rejects.toThrow(
      "an entry of the books never changes",
    );
  });
});
