import type { LedgerReads } from "../ledger-context.ts";

/** The part of a payment, archived or not, that says whether it may be lost. */
interface EndedRow {
  id: string;
  state: string;
  closed_at: number | null;
  refund_of: string | null;
}

/**
 * Ids of those payments that are lost: they were final, a reorganisation has taken their block
 * away, and they have ended without their money. The triggers of the books have the same rule.
 */
export async function findLost(
  { db, dialect }: LedgerReads,
  rows: readonly EndedRow[],
): Promise<ReadonlySet<string>> {
  const ended = rows.filter(
    ({ state, closed_at, refund_of }) =>
      (state === "failed" || state === "expired") && closed_at !== null && refund_of === null,
  );
  if (ended.length === 0) return new Set();
  const found = await db
    .selectFrom("deep_reversals")
    .select("payment_id")
    .where("payment_id", "in", dialect.among(ended.map(({ id }) => id)))
    .execute();
  return new Set(found.map(({ payment_id }) => payment_id));
}
