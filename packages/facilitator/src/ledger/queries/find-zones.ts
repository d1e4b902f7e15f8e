import { toLowerHex } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import { timeOfId } from "../sortable-id.ts";
import { createdIds, dayMs, type IdTimes } from "./created-range.ts";
import type { PaymentFilter } from "./list-payments.ts";

/**
 * Times whose ids have all ended payments of a filter. They are the days that its sums name, and
 * the changes after them. The newest first; no two overlap.
 */
export async function findZones(
  reads: LedgerReads,
  filter: PaymentFilter & { routeId: number | undefined },
): Promise<IdTimes[]> {
  const { db } = reads;
  const { network, asset, routeId } = filter;
  const state = filter.state === "confirmed" ? filter.state : undefined;
  const days = new Set<number>();
  for (const table of ["payment_sums", "payment_changes"] as const) {
    let query = db.selectFrom(table).select("day").distinct();
    if (state !== undefined) query = query.where("state", "=", state);
    if (network !== undefined) query = query.where("network", "=", network);
    if (asset !== undefined) query = query.where("asset", "=", toLowerHex(asset));
    if (routeId !== undefined) query = query.where("route_id", "=", routeId);
    for (const { day } of await query.execute()) days.add(day);
  }
  const ofDays = [...days].map((day) =>
    createdIds({ createdFrom: day * dayMs, createdBefore: (day + 1) * dayMs }),
  );
  return merge([...ofDays, ...(await unsummedZone(reads))]);
}

/** The time of the payments from before the sums that these do not contain yet. */
export async function unsummedZone({ db }: LedgerReads): Promise<IdTimes[]> {
  const { summed_to, last_id } = await db
    .selectFrom("payment_sums_progress")
    .select(["summed_to", "last_id"])
    .executeTakeFirstOrThrow();
  if (summed_to >= last_id) return [];
  return [{ from: summed_to === "" ? 0 : timeOfId(summed_to), before: timeOfId(last_id) + 1 }];
}

/** Joins those that touch. */
function merge(times: readonly IdTimes[]): IdTimes[] {
  const merged: IdTimes[] = [];
  for (const { from, before } of [...times].sort((a, b) => b.from - a.from)) {
    const last = merged.at(-1);
    if (last !== undefined && before >= last.from) {
      last.from = from;
      last.before = Math.max(last.before, before);
    } else merged.push({ from, before });
  }
  return merged;
}
