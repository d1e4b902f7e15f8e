import { registerEndpoints } from "@coinslot/storage";
import { describe, expect, it } from "vitest";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { closePayments } from "../ledger/maintenance/close-payments.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { finaliseBlocks } from "../ledger/transactions/undo-blocks.ts";
import { undoFinalPayments } from "../ledger/transactions/undo-final-blocks.ts";
import { timelineOperation } from "../reads/timeline/timeline-operation.ts";
import { findInLedger } from "../reads/today/find-attention.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { inclusion, network, stateOf, submit } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { createBooksReader } from "./books-reader.ts";

const block = { number: inclusion.blockNumber, hash: inclusion.blockHash };
const reason = "invalid_exact_evm_transaction_failed";
const always = { from: 0, before: 8_640_000_000_000_000 };

describe.each(engines)("the loss of a final payment, on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);

  /** A payment that was final, in a block that has left. */
  async function takenBack(ledger: LedgerContext): Promise<string> {
    const id = await submit(ledger);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    await finaliseBlocks(ledger, { network, blocks: [block] });
    const left = { network, ids: [id], blocks: [block], unusedAtBlock: 2 } as const;
    expect(await undoFinalPayments(ledger, left)).toMatchObject([{ id, wasDelivered: false }]);
    expect(await undoFinalPayments(ledger, left)).toEqual([]);
    return id;
  }

  async function lose(ledger: LedgerContext, id: string) {
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);
    return closePayments(ledger, [id]);
  }

  const balances = async ({ db, dialect }: LedgerContext) => {
    const sums: Record<string, bigint> = {};
    const names = Object.fromEntries(Object.entries(accounts).map(([name, id]) => [id, name]));
    for (const row of await db.selectFrom("book_entries").selectAll().execute()) {
      const amount = dialect.amount.decode(row.amount);
      const [debit = "", credit = ""] = [names[row.debit], names[row.credit]];
      sums[debit] = (sums[debit] ?? 0n) + amount;
      sums[credit] = (sums[credit] ?? 0n) - amount;
    }
    return sums;
  };

  const faultsOf = async (ledger: LedgerContext) => {
    const faults = [];
    for await (const page of createBooksReader(ledger).check(always)) faults.push(...page.faults);
    return faults;
  };

  it("moves it from the wallet to the losses, and back if it is executed after all", async () => {
    const ledger = await join("one");
    const id = await takenBack(ledger);
    expect(await balances(ledger)).toEqual({ wallet: 0n, income: 0n });
    expect(await lose(ledger, id)).toEqual([{ id, wasDelivered: false }]);
    expect(await balances(ledger)).toEqual({ wallet: 0n, income: -10n, losses: 10n });
    expect(await faultsOf(ledger)).toEqual([]);
    const moved = { ...inclusion, blockNumber: 7 };
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion: moved } }]);
    expect(await balances(ledger)).toEqual({ wallet: 10n, income: -10n, losses: 0n });
    expect(await faultsOf(ledger)).toEqual([]);
  });

  it("is missed by the check of the books where no entry says so", async () => {
    const ledger = await join("one");
    const id = await takenBack(ledger);
    await lose(ledger, id);
    await ledger.db.deleteFrom("book_entries").where("debit", "=", accounts.losses).execute();
    expect(await faultsOf(ledger)).toMatchObject([{ fault: "missing_entry", sourceId: id }]);
  });

  it("is sent to a receiver, needs a person, and stands in the payment's timeline", async () => {
    const ledger = await join("one");
    await registerEndpoints(ledger, [
      { id: "whk_1", url: "https://a.example/", secrets: [], types: ["payment.lost"] },
    ]);
    const id = await takenBack(ledger);
    const attention = async () =>
      (await findInLedger(ledger, Date.now()))
        .filter(({ code }) => code === "final_reorganised")
        .map(({ code, detail }) => ({ code, detail }));
    expect(await attention()).toEqual([
      { code: "final_reorganised", detail: "0 lost, 1 under way" },
    ]);
    await lose(ledger, id);
    expect(await attention()).toEqual([
      { code: "final_reorganised", detail: "1 lost, 0 under way" },
    ]);
    const events = await ledger.db
      .selectFrom("outbox_events" as never)
      .select(["type", "key"] as never)
      .execute();
    expect(events).toEqual([{ type: "payment.lost", key: id }]);
    if (timelineOperation.access !== "read") throw new Error("not a read");
    const { steps } = await timelineOperation.run(ledger, { id });
    expect(steps.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["reverted", "lost"]));
  });

  it("opens its transaction again, and searches from the block that stands", async () => {
    const ledger = await join("one");
    const id = await submit(ledger, {});
    await ledger.write((transaction) =>
      transaction.updateTable("payments").set({ unused_at_block: 4 }).execute(),
    );
    const settled = { id: "transaction 0 of 1", inclusion, gasUsed: 1n, gasCost: 3n };
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }], settled);
    await finaliseBlocks(ledger, { network, blocks: [block] });
    await undoFinalPayments(ledger, { network, ids: [id], blocks: [block], unusedAtBlock: 2 });
    expect(await stateOf(ledger, id)).toBe("submitted");
    const row = await ledger.db
      .selectFrom("payments")
      .select(["unused_at_block", "final_at", "block_hash"])
      .executeTakeFirstOrThrow();
    expect(row).toEqual({ unused_at_block: 2, final_at: null, block_hash: null });
    expect(await balances(ledger)).toMatchObject({ gas: 0n, relayers: 0n });
  });
});
