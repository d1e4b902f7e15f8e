import type { Address, Network } from "@coinslot/protocol";
import { type SelectQueryBuilder, sql } from "kysely";
import { bytesToHex } from "viem";
import type { LedgerReads } from "../ledger-context.ts";
import { inSnapshot } from "../ledger-reads.ts";
import { type LedgerSchema, openStates, type PaymentState } from "../schema.ts";
import { sortableIdAt } from "../sortable-id.ts";
import { is } from "../states.ts";
import { endedStates } from "../sums-schema.ts";
import { type CreatedRange, createdIds, dayMs, isCreatedWithin } from "./created-range.ts";
import { findSoldTexts } from "./find-route-of.ts";

/** Number and sum of an asset's payments in one state. */
export interface PaymentStats {
  network: Network;
  asset: Address;
  state: PaymentState;
  count: number;
  /** In the token's smallest unit. */
  amount: bigint;
  /** The day of their creation in UTC, such as `2026-11-20`, if asked for. */
  day?: string;
  /** The route they bought, if asked for, and if they name one. */
  route?: string | undefined;
}

/** A division of the sums. */
export type StatsGroup = "day" | "route";

export interface StatsOptions extends CreatedRange {
  /** Divides the sums further. */
  by?: readonly StatsGroup[] | undefined;
}

/** Days since 1970 until the last id. */
const maxDay = Math.floor(2 ** 48 / dayMs);

/**
 * Counts the payments of the ledger by network, asset and state.
 *
 * Reads the sums of whole days, and payments only where there are no sums. These are open ones, and
 * those at the ends of a range that is not of whole days. They are also those from before the sums,
 * until these contain them. A whole day includes payments that retention has deleted.
 */
export function paymentStats(
  reads: LedgerReads,
  { createdFrom = 0, createdBefore, by = [] }: StatsOptions = {},
): Promise<PaymentStats[]> {
  return inSnapshot(reads, async (snapshot) => {
    const totals = createTotals(by);
    const range = { createdFrom, createdBefore };
    const whole = wholeDays(range);
    for (const part of whole === undefined ? [range] : edgesOf(range, whole)) {
      for (const row of await sumEnded(snapshot, part)) totals.add(row);
    }
    if (whole !== undefined) for (const row of await sumDays(snapshot, whole)) totals.add(row);
    for (const row of await sumOpen(snapshot, range)) totals.add(row);
    return totals.finish(await findSoldTexts(snapshot, totals.routeIds()));
  });
}

/** Whole days since 1970: from the first on, and before the second. */
interface Days {
  from: number;
  before: number;
}

function wholeDays({ createdFrom = 0, createdBefore }: CreatedRange): Days | undefined {
  const from = Math.ceil(createdFrom / dayMs);
  const before = createdBefore === undefined ? maxDay : Math.floor(createdBefore / dayMs);
  return from < before ? { from, before } : undefined;
}

/** The parts of a range before and after its whole days. */
function edgesOf(range: CreatedRange, { from, before }: Days): CreatedRange[] {
  const { createdFrom = 0, createdBefore } = range;
  const edges: CreatedRange[] = [];
  if (createdFrom < from * dayMs) edges.push({ createdFrom, createdBefore: from * dayMs });
  if (createdBefore !== undefined && before * dayMs < createdBefore) {
    edges.push({ createdFrom: before * dayMs, createdBefore });
  }
  return edges;
}

/** Payments to be added to a total. */
interface Part {
  network: Network;
  asset: Address;
  state: PaymentState;
  day: number;
  routeId: number;
  count: number;
  amount: bigint;
}

function createTotals(by: readonly StatsGroup[]) {
  const totals = new Map<string, Part>();
  const byDay = by.includes("day");
  const byRoute = by.includes("route");
  return {
    add(part: Part): void {
      const { network, asset, state } = part;
      const day = byDay ? part.day : 0;
      const routeId = byRoute ? part.routeId : 0;
      const key = `${day}/${network}/${asset}/${routeId}/${state}`;
      const total = totals.get(key) ?? {
        network,
        asset,
        state,
        day,
        routeId,
        count: 0,
        amount: 0n,
      };
      total.count += part.count;
      total.amount += part.amount;
      totals.set(key, total);
    },
    routeIds: () =>
      byRoute ? [...new Set([...totals.values()].map(({ routeId }) => routeId))] : [],
    finish(names: ReadonlyMap<number, string>): PaymentStats[] {
      return [...totals.values()]
        .filter(({ count }) => count > 0)
        .sort((a, b) => a.day - b.day)
        .map(({ day, routeId, ...stats }) => ({
          ...stats,
          ...(byDay ? { day: new Date(day * dayMs).toISOString().slice(0, 10) } : {}),
          ...(byRoute ? { route: names.get(routeId) } : {}),
        }));
    },
  };
}

/** Ended payments whose days have sums: the sums, the changes that they lack, and the rest. */
async function sumDays({ db, dialect }: LedgerReads, days: Days): Promise<Part[]> {
  const { amount } = dialect;
  const { summed_to, last_id } = await db
    .selectFrom("payment_sums_progress")
    .select(["summed_to", "last_id"])
    .executeTakeFirstOrThrow();
  const sums = await db
    .selectFrom("payment_sums")
    .select(["day", "network", "asset", "route_id", "state", "count", "amount"])
    .where("day", ">=", days.from)
    .where("day", "<", days.before)
    .execute();
  const parts = sums.map((row) => toPart(row, row.count, amount.decode(row.amount)));
  const changes = await db
    .selectFrom("payment_changes")
    .select(["payment_id", "day", "network", "asset", "route_id", "state", "value", "step"])
    .where("day", ">=", days.from)
    .where("day", "<", days.before)
    .execute();
  for (const row of changes) {
    // The sums lack such a payment. It is read below, unless it was deleted.
    const isEarlier = row.payment_id > summed_to && row.payment_id <= last_id;
    const count = isEarlier ? (row.step === 0 ? 1 : 0) : row.step;
    parts.push(toPart(row, count, BigInt(count) * amount.decode(row.value)));
  }
  if (summed_to < last_id) {
    const earlier = await sumPayments({ db, dialect }, (query) =>
      query
        .where("state", "in", endedStates)
        .where("id", ">", summed_to)
        .where("id", "<=", last_id)
        .where("created_at", ">=", days.from * dayMs)
        .where("created_at", "<", days.before * dayMs),
    );
    parts.push(...earlier);
  }
  return parts;
}

/** Ended payments of a part of a day, with the archived ones. */
async function sumEnded(reads: LedgerReads, range: CreatedRange): Promise<Part[]> {
  const parts = await sumPayments(reads, (query) =>
    query.where(isCreatedWithin(range)).where("state", "in", endedStates),
  );
  return [...parts, ...(await sumArchived(reads, range))];
}

async function sumArchived({ db, dialect }: LedgerReads, range: CreatedRange): Promise<Part[]> {
  const { createdFrom = 0, createdBefore = maxDay * dayMs } = range;
  const { from, before } = createdIds(range);
  const day = sql<number>`created_at / ${sql.lit(dayMs)}`;
  const rows = await db
    .selectFrom("archived_payments")
    .select(["network", "asset", "route_id", "state", day.as("day")])
    .select((select) => [
      select.fn.countAll().as("count"),
      dialect.amount.sum(select.ref("value")).as("amount"),
    ])
    .where("id", ">=", sortableIdAt(from))
    .where("id", "<", sortableIdAt(before))
    .where("created_at", ">=", createdFrom)
    .where("created_at", "<", createdBefore)
    .groupBy(["network", "asset", "route_id", "state", day])
    .execute();
  return rows.map((row) =>
    toPart(
      { ...row, asset: bytesToHex(row.asset), route_id: row.route_id ?? 0 },
      Number(row.count),
      dialect.amount.decode(row.amount),
    ),
  );
}

/** Open payments: few, and each state has an index of its own. */
async function sumOpen(reads: LedgerReads, range: CreatedRange): Promise<Part[]> {
  const { createdFrom = 0, createdBefore = maxDay * dayMs } = range;
  const parts: Part[] = [];
  for (const state of openStates) {
    const open = await sumPayments(reads, (query) =>
      query
        .where("state", "=", is(state))
        .where("created_at", ">=", createdFrom)
        .where("created_at", "<", createdBefore),
    );
    parts.push(...open);
  }
  return parts;
}

type PaymentQuery = SelectQueryBuilder<LedgerSchema, "payments", object>;

async function sumPayments(
  { db, dialect }: LedgerReads,
  where: (query: PaymentQuery) => PaymentQuery,
): Promise<Part[]> {
  const day = sql<number>`created_at / ${sql.lit(dayMs)}`;
  const rows = await where(db.selectFrom("payments").where("refund_of", "is", null))
    .select(["network", "asset", "route_id", "state", day.as("day")])
    .select((select) => [
      select.fn.countAll().as("count"),
      dialect.amount.sum(select.ref("value")).as("amount"),
    ])
    .groupBy(["network", "asset", "route_id", "state", day])
    .execute();
  return rows.map((row) =>
    toPart(
      { ...row, route_id: row.route_id ?? 0 },
      Number(row.count),
      dialect.amount.decode(row.amount),
    ),
  );
}

function toPart(
  row: { network: Network; asset: Address; state: PaymentState; day: number; route_id: number },
  count: number,
  amount: bigint,
): Part {
  const { network, asset, state, day, route_id } = row;
  return { network, asset, state, day, routeId: route_id, count, amount };
}
