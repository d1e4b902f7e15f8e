import { sql } from "kysely";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import type { BookRange } from "./book-entry.ts";
import type { ComparedRows } from "./check-page.ts";
import { selectEntries } from "./read-entries.ts";

/** Entries of payments and channels that are in no table. Gas outlives its transaction. */
export async function* checkSources(
  reads: LedgerReads,
  { from, before }: BookRange,
  limit: number,
): AsyncGenerator<ComparedRows, void, void> {
  let after = { posted_at: from, id: 0 };
  for (;;) {
    const start = after;
    const { rows, unknown } = await inSnapshot(reads, async (snapshot) => {
      const page = await selectEntries(snapshot, { after: start, before, limit });
      const movements = page.filter(
        ({ debit, credit }) => debit !== accounts.gas && credit !== accounts.gas,
      );
      return { rows: page, unknown: await findUnknown(snapshot, movements) };
    });
    const last = rows.at(-1);
    yield {
      count: rows.length,
      faults: unknown.map(({ source_id, network }) => ({
        fault: "unknown_source",
        sourceId: source_id,
        network,
        transaction: undefined,
      })),
      transfers: [],
    };
    if (last === undefined || rows.length < limit) return;
    after = last;
  }
}

/** Those whose source is in no table. */
async function findUnknown<Row extends { source_id: string }>(
  { db, dialect }: LedgerReads,
  rows: readonly Row[],
): Promise<Row[]> {
  let unknown = [...rows];
  for (const table of ["payments", "archived_payments", "refunds", "channel_payouts"] as const) {
    if (unknown.length === 0) return [];
    const ids = unknown.map(({ source_id }) => source_id);
    const found = await db
      .selectFrom(table)
      .select("id")
      .where("id", "in", dialect.among(ids))
      .execute();
    const known = new Set(found.map(({ id }) => id));
    unknown = unknown.filter(({ source_id }) => !known.has(source_id));
  }
  if (unknown.length === 0) return [];
  const among = dialect.among(unknown.map(({ source_id }) => source_id));
  const channels = await db
    .selectFrom("channel_terms")
    .select("channel_id")
    .where(({ ref }) => sql<boolean>`${ref("channel_id")} in ${among}`)
    .execute();
  const known = new Set<string>(channels.map(({ channel_id }) => channel_id));
  return unknown.filter(({ source_id }) => !known.has(source_id));
}
