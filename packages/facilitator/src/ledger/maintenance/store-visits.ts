import type { VisitTally } from "@coinslot/protocol";
import { sql, type Transaction } from "kysely";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import type { VisitsTable } from "../visits-schema.ts";

const dayMs = 86_400_000;
/** Rows of one statement. */
const rowsAtOnce = 200;
/** PostgreSQL indexes no text of more than 2,700 bytes. */
const maxRouteLength = 500;
const keys = ["day", "route", "reason", "network", "asset", "process_id"] as const;

/**
 * Adds what was counted since the last time to the rows of this process and day, in one database
 * transaction. No other process writes them. Where its outcome gets lost, they are added again.
 */
export async function storeVisits(
  ledger: LedgerContext,
  tallies: readonly VisitTally[],
): Promise<void> {
  const { processId, now } = ledger;
  const day = Math.floor(now() / dayMs);
  const counted = tallies.filter(({ total, stored }) => total > stored);
  if (counted.length === 0) return;
  const totals = counted.map(({ total }) => total);
  const rows = counted.map(({ route, reason, network, asset, total, stored }) => ({
    ...{ day, route: storedRoute(route), reason, network, asset },
    process_id: processId,
    count: total - stored,
  }));
  await ledger.write((transaction) => addVisits(transaction, mergeRows(rows)), forProcess);
  counted.forEach((tally, index) => {
    tally.stored = totals[index] ?? tally.stored;
  });
}

/**
 * Adds rows of processes up to a day into one row for all, a bounded number in a step. The racer is
 * a process that still adds to such a day: its row waits for the lock, or is made anew.
 *
 * @returns whether there may be more
 */
export async function sumVisitsOfPast(
  ledger: LedgerContext,
  { beforeDay, limit }: { beforeDay: number; limit: number },
): Promise<boolean> {
  const found = await ledger.db
    .selectFrom("visits")
    .select(keys)
    .where("day", "<", beforeDay)
    // In the words of its index.
    .where(sql<boolean>`process_id <> ''`)
    .limit(limit)
    .execute();
  if (found.length === 0) return false;
  await ledger.write(async (transaction) => {
    const taken: VisitsTable[] = [];
    for (const key of found) {
      let query = transaction.deleteFrom("visits");
      for (const name of keys) query = query.where(name, "=", key[name]);
      taken.push(...(await query.returningAll().execute()));
    }
    await addVisits(transaction, mergeRows(taken.map((row) => ({ ...row, process_id: "" }))));
  }, forProcess);
  return found.length === limit;
}

/**
 * Deletes the rows of the oldest day before a day: one step.
 *
 * @returns whether there may be more
 */
export async function forgetVisits(
  ledger: LedgerContext,
  { beforeDay }: { beforeDay: number },
): Promise<boolean> {
  const oldest = await ledger.db
    .selectFrom("visits")
    .select("day")
    .where("day", "<", beforeDay)
    .orderBy("day")
    .limit(1)
    .executeTakeFirst();
  if (oldest === undefined) return false;
  await ledger.write(
    (transaction) => transaction.deleteFrom("visits").where("day", "=", oldest.day).execute(),
    forProcess,
  );
  return true;
}

async function addVisits(
  transaction: Transaction<LedgerSchema>,
  rows: readonly VisitsTable[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    await transaction
      .insertInto("visits")
      .values(rows.slice(from, from + rowsAtOnce))
      .onConflict((conflict) =>
        conflict
          .columns([...keys])
          .doUpdateSet({ count: sql<number>`visits.count + excluded.count` }),
      )
      .execute();
  }
}

/** One row for each key, in one order: PostgreSQL refuses two of a statement. */
function mergeRows(rows: readonly VisitsTable[]): VisitsTable[] {
  const merged = new Map<string, VisitsTable>();
  for (const row of rows) {
    const key = JSON.stringify(keys.map((name) => row[name]));
    merged.set(key, { ...row, count: row.count + (merged.get(key)?.count ?? 0) });
  }
  return [...merged].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
}

function storedRoute(route: string): string {
  return Buffer.from(route.slice(0, maxRouteLength).replaceAll("\0", "")).toString();
}
