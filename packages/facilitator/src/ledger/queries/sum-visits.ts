import type { LedgerReads } from "../ledger-context.ts";
import type { VisitsTable } from "../visits-schema.ts";

/** A division of the counts. */
export const visitGroups = ["day", "route", "reason", "network", "asset"] as const;
export type VisitGroup = (typeof visitGroups)[number];

/** Number of visits, and what they have in common. */
export type VisitSum = Partial<Pick<VisitsTable, VisitGroup>> & { count: number };

/** Sums the visits of some days, over all processes. */
export async function sumVisits(
  { db }: LedgerReads,
  options: {
    /** Days since 1970, the last one exclusive. */
    fromDay?: number | undefined;
    beforeDay?: number | undefined;
    by: readonly VisitGroup[];
    limit: number;
  },
): Promise<VisitSum[]> {
  const { fromDay, beforeDay, by, limit } = options;
  let query = db
    .selectFrom("visits")
    .select((select) => select.fn.sum<number | string>("count").as("count"))
    .limit(limit);
  if (fromDay !== undefined) query = query.where("day", ">=", fromDay);
  if (beforeDay !== undefined) query = query.where("day", "<", beforeDay);
  for (const group of by) query = query.select(group).groupBy(group).orderBy(group);
  const rows = await query.execute();
  return rows.map((row) => ({ ...row, count: Number(row.count ?? 0) }));
}
