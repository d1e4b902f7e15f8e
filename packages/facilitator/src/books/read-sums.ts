import type { LedgerReads } from "../ledger/ledger-context.ts";
import { accountOf, type BookRange, type BookSum, kindOf } from "./book-entry.ts";
import { createNames } from "./name-sold.ts";

const dayMs = 86_400_000;
/** Days read at once: each has a row per currency, route and pair of accounts. */
const daysAtOnce = 31;

/**
 * The sums into which retention has closed the entries of forgotten payments, in the order of their
 * days. Those of a day belong to a range that begins in it, and to none that ends in it.
 */
export async function* readClosedSums(
  reads: LedgerReads,
  range: BookRange,
): AsyncGenerator<BookSum[], void, void> {
  const { db, dialect } = reads;
  const names = createNames(reads);
  const end = Math.ceil(range.before / dayMs);
  for (let day = Math.floor(range.from / dayMs); day < end; ) {
    const first = await db
      .selectFrom("book_sums")
      .select("day")
      .where("day", ">=", day)
      .where("day", "<", end)
      .orderBy("day")
      .limit(1)
      .executeTakeFirst();
    if (first === undefined) return;
    day = Math.min(first.day + daysAtOnce, end);
    const rows = await db
      .selectFrom("book_sums")
      .selectAll()
      .where("day", ">=", first.day)
      .where("day", "<", day)
      .orderBy("day")
      .execute();
    await names.learn(rows.map(({ route_id }) => route_id));
    yield rows.map((row) => ({
      day: row.day,
      ...kindOf(row.debit, row.credit),
      debit: accountOf(row.debit),
      credit: accountOf(row.credit),
      network: row.network,
      asset: row.asset === "" ? undefined : `0x${row.asset.slice(2)}`,
      route: names.nameOf(row.route_id),
      count: Number(row.count),
      amount: dialect.amount.decode(row.amount),
    }));
  }
}
