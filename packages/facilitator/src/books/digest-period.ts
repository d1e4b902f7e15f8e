import { createHash } from "node:crypto";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import type { BookRange } from "./book-entry.ts";
import { sumDays } from "./sum-entries.ts";

/**
 * SHA-256 over the sums by day of a closed period. Retention replaces entries by their sums, which
 * changes none of them. The caller is no seller: it reads for a second per hundred thousand
 * entries.
 */
export async function digestPeriod(reads: LedgerReads, range: BookRange): Promise<string> {
  const hash = createHash("sha256");
  for await (const { day, sums } of sumDays(reads, range)) {
    for (const { network, asset, route_id, debit, credit, count, sum } of sums) {
      hash.update(`${day}|${network}|${asset}|${route_id}|${debit}|${credit}|${count}|${sum}\n`);
    }
  }
  return hash.digest("hex");
}
