import { describe, expect, it } from "vitest";
import type { StoredAmount } from "./dialect.ts";
import { engines, openForTest } from "./testing/engines.ts";

interface BalanceSchema {
  balances: { account: string; balance: StoredAmount; note: string | null; changes: number };
}

const odd = `"quotes", {braces}, [1], 'single', \\ NULL, ünï 🪙`;

describe.each(engines)("records on $engine", ({ createUrl }) => {
  it("update the rows whose columns they match, each with its own values, in one statement", async () => {
    const { kysely, dialect } = await openForTest<BalanceSchema>({ url: await createUrl() });
    const { amount: type, integer, text } = dialect.types;
    const amount = dialect.amount.encode;
    await kysely.schema
      .createTable("balances")
      .addColumn("account", text, (column) => column.primaryKey().notNull())
      .addColumn("balance", type, (column) => column.notNull())
      .addColumn("note", text)
      .addColumn("changes", integer, (column) => column.notNull())
      .execute();
    const max = 2n ** 256n - 1n;
    const before = [
      ["a", 1n],
      ["b", max],
      [odd, 10n],
      ["d", 9n],
    ] as const;
    await dialect.insertMany(
      kysely,
      "balances",
      before.map(([account, balance]) => ({
        account,
        balance: amount(balance),
        note: "old",
        changes: 0,
      })),
    );
    const rows = [
      { account: "a", seen: amount(1n), next: amount(max), note: odd, step: 1 },
      { account: "b", seen: amount(max), next: amount(0n), note: null, step: 2 ** 53 - 1 },
      // Larger by number, smaller by letters.
      { account: odd, seen: amount(9n), next: amount(5n), note: "never", step: 1 },
      { account: "nobody", seen: amount(9n), next: amount(5n), note: "never", step: 1 },
    ];
    const records = dialect.records(
      "item",
      { account: "text", seen: "amount", next: "amount", note: "text", step: "integer" },
      rows,
    );
    const changed = await kysely
      .updateTable("balances")
      .from(records)
      .set(({ ref }) => ({
        balance: ref("item.next"),
        note: ref("item.note"),
        changes: ref("item.step"),
      }))
      .whereRef("balances.account", "=", "item.account")
      .whereRef("balances.balance", "<=", "item.seen")
      .returning("balances.account")
      .execute();
    expect(changed.map(({ account }) => account).toSorted()).toEqual(["a", "b"]);
    const after = await kysely.selectFrom("balances").selectAll().orderBy("account").execute();
    const found = after.map((row) => ({ ...row, balance: dialect.amount.decode(row.balance) }));
    expect(found).toEqual(
      expect.arrayContaining([
        { account: "a", balance: max, note: odd, changes: 1 },
        { account: "b", balance: 0n, note: null, changes: 2 ** 53 - 1 },
        { account: odd, balance: 10n, note: "old", changes: 0 },
        { account: "d", balance: 9n, note: "old", changes: 0 },
      ]),
    );
  });

  it("are an empty table without rows", async () => {
    const { kysely, dialect } = await openForTest<BalanceSchema>({ url: await createUrl() });
    const none = dialect.records<{ account: string }, "item">("item", { account: "text" }, []);
    expect(await kysely.selectFrom(none).select("item.account").execute()).toEqual([]);
  });
});
