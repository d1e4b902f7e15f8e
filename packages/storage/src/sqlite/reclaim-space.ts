import { sql, type Transaction } from "kysely";

/** `pragma auto_vacuum` of a file whose unused pages are given back on request. */
const incremental = 2;
/** New rows take unused pages first, so one in so many pages stays. */
const keptShare = 16;

/** `Dialect.reclaimSpace` of SQLite. */
export async function reclaimSqliteSpace<Schema>(
  transaction: Transaction<Schema>,
  pages: number,
): Promise<boolean> {
  const surplus = await countSurplus(transaction);
  if (surplus <= 0) return false;
  // One page each time: the pragma frees a page at every step of its statement, and is run for one.
  for (let page = 0; page < Math.min(pages, surplus); page += 1) {
    await sql`pragma incremental_vacuum(1)`.execute(transaction);
  }
  return surplus > pages;
}

async function countSurplus<Schema>(transaction: Transaction<Schema>): Promise<number> {
  const { rows } = await sql<{ unused: number; pages: number; mode: number }>`
    select freelist_count as unused, page_count as pages, auto_vacuum as mode
    from pragma_freelist_count, pragma_page_count, pragma_auto_vacuum
  `.execute(transaction);
  const [row] = rows;
  if (row === undefined || row.mode !== incremental) return 0;
  // So many less, and the rest is that share of the shorter file.
  return Math.floor((keptShare * row.unused - row.pages) / (keptShare - 1));
}
