import { createNames } from "../books/name-sold.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";

/** Purchase of a refunded payment. */
export interface SoldByPayment {
  route: string | undefined;
  /** Path that was sold: a buyer chooses a part of it. */
  resource: string | undefined;
}

/** Finds what payments have bought, archived ones, too. Deleted ones are missing. */
export async function findSold(
  reads: LedgerReads,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, SoldByPayment>> {
  const found = new Map<string, SoldByPayment>();
  if (paymentIds.length === 0) return found;
  const { db, dialect } = reads;
  const names = createNames(reads);
  for (const table of ["payments", "archived_payments"] as const) {
    const rows = await db
      .selectFrom(table)
      .select(["id", "route_id", "resource_id"])
      .where("id", "in", dialect.among(paymentIds))
      .execute();
    await names.learn(rows.flatMap(({ route_id, resource_id }) => [route_id, resource_id]));
    for (const { id, route_id, resource_id } of rows) {
      found.set(id, { route: names.nameOf(route_id), resource: names.nameOf(resource_id) });
    }
  }
  return found;
}
