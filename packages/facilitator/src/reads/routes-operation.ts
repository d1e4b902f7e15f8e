import * as z from "zod";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { dayMs } from "../ledger/queries/created-range.ts";
import { type PaymentStats, paymentStats } from "../ledger/queries/payment-stats.ts";
import { sumVisits, type VisitSum } from "../ledger/queries/sum-visits.ts";
import { defineOperation } from "../operators/operation.ts";
import { type ChargeSum, sumCharges } from "./sum-charges.ts";
import { type Money, moneySchema, timeArgument, toIso, toMoney } from "./wire-forms.ts";

/** Newest payments that are looked through for the time of a last sale. */
const newestSales = 500;

const routeSchema = z.object({
  /** As the seller has named it. `null`: sales without a name, from before the names. */
  route: z.string().nullable(),
  /** Confirmed payments. */
  sales: z.number(),
  /** By token. */
  income: z.array(moneySchema),
  /** Charges on channels, of whole days in UTC. */
  charges: z.number().default(0),
  /** Their sum by token, less what was taken back. It is income, too, and not in `income`. */
  charged: z.array(moneySchema).default([]),
  /** Payments under way. */
  open: z.number(),
  failed: z.number(),
  expired: z.number(),
  /** Requests that ended without a sale, after a payment was accepted. */
  released: z.number(),
  /** Offers that no payment followed, of whole days in UTC. */
  offers: z.number(),
  /** Requests whose payment was refused, of whole days in UTC. */
  refusals: z.number(),
  /** Day of the last sale in UTC, such as `2026-11-23`. */
  lastSaleDay: z.string().nullable(),
  /** The same to the millisecond, where it is among the newest 500 sales of all routes. */
  lastSaleAt: z.string().nullable(),
});

export const routesListArgument = z.strictObject({
  /** Time of creation. Whole days, in UTC, are the fastest. */
  from: timeArgument.optional(),
  to: timeArgument.optional(),
});

export const routesListResult = z.object({ routes: z.array(routeSchema) });

/** The routes of a ledger. */
export type RoutesList = z.infer<typeof routesListResult>;

/** Sales and income of each route, the one with the most sales and charges first. */
export const listRoutesOperation = defineOperation({
  name: "routes.list",
  access: "read",
  argument: routesListArgument,
  result: routesListResult,
  run: (reads, { from, to }) =>
    inSnapshot(reads, async (snapshot) => {
      const by = ["day", "route"] as const;
      const stats = await paymentStats(snapshot, { createdFrom: from, createdBefore: to, by });
      const newest = await readNewestSales(snapshot);
      const visits = await readVisits(snapshot, { from, to });
      const charges = await sumCharges(snapshot, {
        fromDay: from === undefined ? 0 : Math.floor(from / dayMs),
        beforeDay: Math.ceil((to ?? endOfTime) / dayMs),
      });
      const names = [...stats, ...visits, ...charges].map(({ route }) => route || undefined);
      const routes = [...new Set(names)].map((route) => ({
        ...summarise(
          route,
          stats.filter((each) => each.route === route),
          newest,
        ),
        ...countCharges(charges.filter((each) => each.route === route)),
        ...countVisits(visits.filter((each) => each.route === (route ?? ""))),
      }));
      const sold = ({ sales, charges: charged }: (typeof routes)[number]) => sales + charged;
      return { routes: routes.sort((one, other) => sold(other) - sold(one)) };
    }),
});

function summarise(
  route: string | undefined,
  stats: readonly PaymentStats[],
  newest: ReadonlyMap<string | null, number>,
): Omit<RoutesList["routes"][number], "offers" | "refusals" | "charges" | "charged"> {
  const count = (...states: string[]) =>
    stats.filter(({ state }) => states.includes(state)).reduce((sum, each) => sum + each.count, 0);
  const sold = stats.filter(({ state }) => state === "confirmed");
  const lastSaleDay = sold
    .map(({ day }) => day ?? "")
    .sort()
    .at(-1);
  const lastAt = newest.get(route ?? null);
  // Names were written before days: a filter of times may leave the newest sale out.
  const isOfDay = lastAt !== undefined && toIso(lastAt)?.startsWith(lastSaleDay ?? "-");
  return {
    route: route ?? null,
    sales: count("confirmed"),
    income: sumMoney(sold),
    open: count("reserved", "queued", "submitted"),
    failed: count("failed"),
    expired: count("expired"),
    released: count("released"),
    lastSaleDay: lastSaleDay ?? null,
    lastSaleAt: isOfDay ? toIso(lastAt) : null,
  };
}

const maxVisits = 20_000;
/** Later than every row. */
const endOfTime = 8_640_000_000_000_000;

function countCharges(sums: readonly ChargeSum[]): { charges: number; charged: Money[] } {
  return { charges: sums.reduce((all, { count }) => all + count, 0), charged: sumMoney(sums) };
}

/** Visits of the days that a time touches. */
function readVisits(
  reads: LedgerReads,
  { from, to }: { from: number | undefined; to: number | undefined },
): Promise<VisitSum[]> {
  return sumVisits(reads, {
    fromDay: from === undefined ? undefined : Math.floor(from / dayMs),
    beforeDay: to === undefined ? undefined : Math.ceil(to / dayMs),
    by: ["route", "reason"],
    limit: maxVisits,
  });
}

function countVisits(visits: readonly VisitSum[]): { offers: number; refusals: number } {
  const sum = (list: readonly VisitSum[]) => list.reduce((all, { count }) => all + count, 0);
  const offers = sum(visits.filter(({ reason }) => reason === "offered"));
  return { offers, refusals: sum(visits) - offers };
}

/** Sums by token. */
export function sumMoney(
  stats: readonly Pick<PaymentStats, "network" | "asset" | "amount">[],
): Money[] {
  const sums = new Map<string, Pick<PaymentStats, "network" | "asset" | "amount">>();
  for (const { network, asset, amount } of stats) {
    const key = `${network}/${asset}`;
    sums.set(key, { network, asset, amount: amount + (sums.get(key)?.amount ?? 0n) });
  }
  return [...sums.values()]
    .sort((one, other) =>
      `${one.network}/${one.asset}` < `${other.network}/${other.asset}` ? -1 : 1,
    )
    .map(({ network, asset, amount }) => toMoney(network, asset, amount));
}

/** Times of the newest sales, by their routes. */
async function readNewestSales({ db }: LedgerReads): Promise<Map<string | null, number>> {
  const rows = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select(["id", "route_id", "created_at", "state", "refund_of"])
        .orderBy("id", "desc")
        .limit(newestSales)
        .as("newest"),
    )
    .leftJoin("sold_names", "sold_names.id", "newest.route_id")
    .select(["sold_names.name as name", "newest.created_at as created_at"])
    .where("newest.state", "=", "confirmed")
    .where("newest.refund_of", "is", null)
    .execute();
  const times = new Map<string | null, number>();
  for (const { name, created_at } of rows) {
    times.set(name, Math.max(created_at, times.get(name) ?? 0));
  }
  return times;
}
