import { describe, expect, it } from "vitest";
import { accounts } from "../ledger/books-schema.ts";
import { sortableIdAt } from "../ledger/sortable-id.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { asset, hash, network, payer } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { sellForTest } from "../testing/sold-payments.ts";
import { booksCheckOperation, booksSumsOperation } from "./books-read-operations.ts";

const dayMs = 86_400_000;
const iso = (time: number) => new Date(time).toISOString();

describe.each(engines)("the reads of the books on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);

  async function run(
    operation: typeof booksCheckOperation | typeof booksSumsOperation,
    ledger: Awaited<ReturnType<typeof join>>,
    range: { from: number; to: number },
  ) {
    if (operation.access !== "read") throw new Error("not a read");
    const argument = operation.argument.parse({ from: iso(range.from), to: iso(range.to) });
    return operation.result.parse(await operation.run(ledger, argument));
  }

  /** From the first creation to the last posting: a test's clock, and a block's. */
  async function wholeRange({ db, now }: Awaited<ReturnType<typeof join>>) {
    const rows = await db.selectFrom("book_entries").select("posted_at").execute();
    const times = [now(), ...rows.map(({ posted_at }) => Number(posted_at))];
    return { from: Math.min(...times) - dayMs, to: Math.max(...times) + dayMs };
  }

  it("sum by kind, currency and route, and find no difference", async () => {
    const ledger = await join("one");
    await sellForTest(ledger, { nonce: 0 });
    await sellForTest(ledger, { nonce: 1 });
    await sellForTest(ledger, { nonce: 2, route: "GET /news" });
    const range = await wholeRange(ledger);
    const posted = { from: range.to - 2 * dayMs, to: range.to };
    const books = await run(booksSumsOperation, ledger, posted);
    expect(books).toMatchObject({ periods: [], isUnfinished: false });
    const { sums } = booksSumsOperation.result.parse(books);
    const payments = sums.filter(({ kind }) => kind === "payment");
    expect(payments.map(({ route, count }) => [route, count]).sort()).toEqual([
      ["GET /news", 1],
      ["GET /weather", 2],
    ]);
    expect(await run(booksCheckOperation, ledger, range)).toMatchObject({
      compared: expect.any(Number),
      faults: [],
      next: null,
    });
    const nothing = await run(booksSumsOperation, ledger, { from: 0, to: dayMs });
    expect(nothing).toMatchObject({ sums: [] });
  });

  it("say which entry is wrong", async () => {
    const ledger = await join("one");
    await sellForTest(ledger, {});
    const range = await wholeRange(ledger);
    await ledger.db.deleteFrom("book_entries").execute();
    const checked = await run(booksCheckOperation, ledger, range);
    expect(checked).toMatchObject({ faults: [{ fault: expect.any(String) }] });
  });

  it("leave nothing out where a check takes several steps", async () => {
    const ledger = await join("one");
    const { db, dialect } = ledger;
    const from = 1_700_000_000_000;
    const amount = dialect.amount.encode(1n);
    const ofRow = { network, asset, amount } as const;
    const none = { cause: null, reason: null, operation_id: null, requested: null, float: null };
    const never = { valid_before: null, approved_at: null, signed_at: null, confirmed_at: null };
    const inNoBlock = { transaction_hash: null, block_number: null, block_hash: null };
    const many = Array.from({ length: 50_500 }, (_, index) => ({
      ...{ ...ofRow, ...none, ...never, ...inNoBlock, payer, nonce: hash(1), final_at: null },
      ...{ n: index, payment_id: "sale", origin: "operator" as const, state: "void" as const },
      ...{ id: `${sortableIdAt(from + index)}${index}`, idempotency_key: null },
      ...{ created_at: 1, next_at: 1 },
    }));
    while (many.length > 0) await db.insertInto("refunds").values(many.splice(0, 1_000)).execute();
    const { wallet, income } = accounts;
    const entry = { ...ofRow, debit: wallet, credit: income, route_id: null, pay_to_id: null };
    await db
      .insertInto("book_entries")
      .values([0, 50_000].map((ms) => ({ ...entry, source_id: `of ${ms}`, posted_at: from + ms })))
      .execute();

    const found: string[] = [];
    let compared = 0;
    let next: string | null = iso(from);
    while (next !== null) {
      const step = booksCheckOperation.result.parse(
        await run(booksCheckOperation, ledger, { from: Date.parse(next), to: from + dayMs }),
      );
      found.push(...step.faults.map(({ sourceId }) => sourceId));
      compared += step.compared;
      next = step.next;
    }

    expect(found.sort()).toEqual(["of 0", "of 50000"]);
    expect(compared).toBe(50_502);
  });

  it("refuse a time of more than 400 days", () => {
    const argument = { from: iso(0), to: iso(401 * dayMs) };
    expect(booksSumsOperation.argument.safeParse(argument).success).toBe(false);
  });
});
