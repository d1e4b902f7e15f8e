import type { LedgerReads } from "../ledger/ledger-context.ts";
import { sortableIdAt, timeOfId } from "../ledger/sortable-id.ts";
import type { BookRange } from "./book-entry.ts";

/** Tables whose rows are read in the order of their ids. */
const tables = [
  "payments",
  "archived_payments",
  "refunds",
  "transactions",
  "channel_payouts",
] as const;

/**
 * End of a time with a bounded number of rows, for a check that goes on there: all kinds of rows
 * are compared up to it before those after it.
 *
 * @param rows of one table, at most, but for those of one millisecond
 * @returns Unix milliseconds, exclusive; at most `before`
 */
export async function findWindowEnd(
  { db }: LedgerReads,
  { from, before }: BookRange,
  rows: number,
): Promise<number> {
  let end = before;
  for (const table of tables) {
    const row = await db
      .selectFrom(table)
      .select("id")
      .where("id", ">", sortableIdAt(from))
      .where("id", "<", sortableIdAt(end))
      .orderBy("id")
      .offset(rows)
      .limit(1)
      .executeTakeFirst();
    if (row !== undefined) end = timeOfId(row.id);
  }
  const entry = await db
    .selectFrom("book_entries")
    .select("posted_at")
    .where("posted_at", ">=", from)
    .where("posted_at", "<", end)
    .orderBy("posted_at")
    .orderBy("id")
    .offset(rows)
    .limit(1)
    .executeTakeFirst();
  if (entry !== undefined) end = Number(entry.posted_at);
  return Math.min(Math.max(end, from + 1), before);
}
