import { toLowerHex } from "@coinslot/protocol";
import { type ExpressionBuilder, sql } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import { inSnapshot } from "../ledger-reads.ts";
import { type PaymentRow, paymentColumns } from "../payments/ledger-payment.ts";
import { type LedgerSchema, openStates } from "../schema.ts";
import { sortableIdAt } from "../sortable-id.ts";
import { is } from "../states.ts";
import type { UnpaidPaymentsTable } from "../sums-schema.ts";
import { createdIds, type IdTimes, isCreatedWithin } from "./created-range.ts";
import { findZones, unsummedZone } from "./find-zones.ts";
import type { PaymentFilter } from "./list-payments.ts";

/**
 * The newest payments of a filter that are not archived, in the order of their ids. By the cheapest
 * way:
 *
 * - of a payer: by its index, and sorted.
 * - in an open state: by the index of that state, and sorted; open payments are few.
 * - failed, expired or released: along `unpaid_payments`.
 * - of a network, asset, route, or confirmed: along the ids, of those days alone whose sums have
 *   such payments. Open ones, which have no sums, by their own indexes.
 * - all others: along the ids.
 */
export function readNewest(
  reads: LedgerReads,
  filter: PaymentFilter,
  limit: number,
): Promise<PaymentRow[]> {
  return inSnapshot(reads, async ({ db, dialect }) => {
    const { route, state } = filter;
    const routeId = route === undefined ? undefined : await findRoute({ db, dialect }, route);
    if (routeId === null) return [];
    const list: Listing = { reads: { db, dialect }, filter, routeId, limit };
    if (filter.payer !== undefined) return readSorted(list, [undefined]);
    if (state === "reserved" || state === "queued" || state === "submitted") {
      return readSorted(list, [state]);
    }
    if (state === "failed" || state === "expired" || state === "released") {
      const earlier = await unsummedZone({ db, dialect });
      return newest(list, [await readUnpaid(list, state), await readZones(list, earlier)]);
    }
    const { network, asset } = filter;
    const hasSums = network !== undefined || asset !== undefined || routeId !== undefined;
    if (!hasSums && state === undefined) return readZones(list, [createdIds({})]);
    const zones = await findZones({ db, dialect }, { ...filter, routeId });
    const ended = await readZones(list, zones);
    return newest(list, [ended, state === undefined ? await readSorted(list, openStates) : []]);
  });
}

const columns = paymentColumns.map((column) => `payments.${column}` as const);

interface Listing {
  reads: LedgerReads;
  filter: PaymentFilter;
  /** The route of the filter, by its id. */
  routeId: number | undefined;
  limit: number;
}

/** Id of a route; `null` if nothing was ever sold under this name. */
export async function findRoute({ db }: LedgerReads, route: string): Promise<number | null> {
  const row = await db
    .selectFrom("sold_names")
    .select("id")
    .where("name", "=", route)
    .executeTakeFirst();
  return row?.id ?? null;
}

/** The conditions of a filter, but for its state. */
function matches({ filter, routeId }: Listing) {
  const { network, asset, payer, cursor } = filter;
  return (where: ExpressionBuilder<LedgerSchema, "payments">) =>
    where.and([
      where("payments.refund_of", "is", null),
      isCreatedWithin(filter)(where),
      ...(cursor === undefined ? [] : [where("payments.id", "<", cursor)]),
      ...(network === undefined ? [] : [where("payments.network", "=", network)]),
      ...(asset === undefined ? [] : [where("payments.asset", "=", toLowerHex(asset))]),
      ...(routeId === undefined ? [] : [where("payments.route_id", "=", routeId)]),
      ...(payer === undefined ? [] : [where("payments.payer", "=", toLowerHex(payer))]),
    ]);
}

/**
 * Finds all ids, then takes the newest. In one step, a database would go along the ids if it
 * expects to find enough soon. It might come to the oldest payment.
 */
async function readSorted(
  list: Listing,
  states: readonly PaymentFilter["state"][],
): Promise<PaymentRow[]> {
  const { reads, filter, limit } = list;
  const rows: PaymentRow[][] = [];
  for (const state of states) {
    const wanted = state ?? filter.state;
    const found = await reads.db
      .with(
        (cte) => cte("found").materialized(),
        (db) =>
          db
            .selectFrom("payments")
            .select("payments.id")
            .where(matches(list))
            .$if(wanted !== undefined, (query) =>
              wanted === undefined ? query : query.where("state", "=", is(wanted)),
            ),
      )
      .selectFrom("payments")
      .select(columns)
      .where("payments.id", "in", (query) =>
        query.selectFrom("found").select("found.id").orderBy("found.id", "desc").limit(limit),
      )
      .orderBy("payments.id", "desc")
      .execute();
    rows.push(found);
  }
  return newest(list, rows);
}

/** Along the ids of a state. */
function readUnpaid(list: Listing, state: UnpaidPaymentsTable["state"]): Promise<PaymentRow[]> {
  const { reads, filter, limit } = list;
  const { from, before } = createdIds(filter);
  return (
    reads.db
      .selectFrom("unpaid_payments")
      // SQLite takes the tables of a cross join in this order.
      .crossJoin("payments")
      .select(columns)
      .whereRef("payments.id", "=", "unpaid_payments.payment_id")
      .whereRef("payments.state", "=", "unpaid_payments.state")
      .where("unpaid_payments.state", "=", state)
      .where("unpaid_payments.payment_id", ">=", sortableIdAt(from))
      .where("unpaid_payments.payment_id", "<", filter.cursor ?? sortableIdAt(before))
      .where(matches(list))
      .orderBy("unpaid_payments.payment_id", "desc")
      .limit(limit)
      .execute()
  );
}

/** Along the ids of some times, the newest first. */
async function readZones(list: Listing, zones: readonly IdTimes[]): Promise<PaymentRow[]> {
  const { reads, filter, limit } = list;
  const range = createdIds(filter);
  const rows: PaymentRow[] = [];
  for (const { from, before } of zones) {
    if (from >= range.before || before <= range.from) continue;
    if (rows.length >= limit) break;
    const found = await reads.db
      .selectFrom("payments")
      .select(columns)
      .where(matches(list))
      .where("id", ">=", sortableIdAt(from))
      .$if(Number.isFinite(before), (query) => query.where("id", "<", sortableIdAt(before)))
      // By an expression: no index of states may be chosen in place of the ids.
      .$if(filter.state !== undefined, (query) =>
        query.where(sql<string>`coalesce(state, '')`, "=", filter.state ?? ""),
      )
      .orderBy("id", "desc")
      .limit(limit - rows.length)
      .execute();
    rows.push(...found);
  }
  return rows;
}

/** The newest of several lists, each payment once. */
function newest({ limit }: Listing, lists: readonly PaymentRow[][]): PaymentRow[] {
  const rows = new Map(lists.flat().map((row) => [row.id, row]));
  return [...rows.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
}
