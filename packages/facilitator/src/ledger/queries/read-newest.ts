import { toLowerHex } from "@coinslot/protocol";
import type { ExpressionBuilder, Selectable } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import { inSnapshot } from "../ledger-reads.ts";
import { type PaymentRow, paymentColumns } from "../payments/ledger-payment.ts";
import { type LedgerSchema, openStates, type PaymentsTable } from "../schema.ts";
import { sortableIdAt } from "../sortable-id.ts";
import { is } from "../states.ts";
import type { UnpaidPaymentsTable } from "../sums-schema.ts";
import { createdIds, type IdTimes, isCreatedAt } from "./created-range.ts";
import { findZones, unsummedZone } from "./find-zones.ts";
import { isInRange, isLeftToRows } from "./index-order.ts";
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
  return readRows(reads, { filter, limit, columns });
}

/** As `readNewest`: of each payment the members that a search compares, which have no index. */
export async function scanNewest(
  reads: LedgerReads,
  filter: PaymentFilter,
  limit: number,
): Promise<ScannedPayment[]> {
  const rows = await readRows(reads, { filter, limit, columns: scanColumns });
  return rows.map(({ id, wire, pay_to_id }) => ({ id, wire, pay_to_id }));
}

function readRows(
  reads: LedgerReads,
  asked: Pick<Listing, "filter" | "limit" | "columns">,
): Promise<Row[]> {
  return inSnapshot(reads, async ({ db, dialect }) => {
    const { filter } = asked;
    const { route, state } = filter;
    const routeId = route === undefined ? undefined : await findRoute({ db, dialect }, route);
    if (routeId === null) return [];
    const list: Listing = { reads: { db, dialect }, routeId, ...asked };
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
const scanColumns = ["payments.id", "payments.wire", "payments.pay_to_id"] as const;

/** A payment, as far as a search without an index compares it. */
export type ScannedPayment = Pick<Selectable<PaymentsTable>, "id" | "wire" | "pay_to_id">;

/** A row with those of its members that `Listing.columns` names. */
type Row = PaymentRow & ScannedPayment;

interface Listing {
  reads: LedgerReads;
  columns: readonly ((typeof columns)[number] | (typeof scanColumns)[number])[];
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

/** The conditions of a filter, but for its state and for those on ids. */
function matchesWithoutIds({ filter, routeId }: Listing) {
  const { network, asset, payer } = filter;
  return (where: ExpressionBuilder<LedgerSchema, "payments">) =>
    where.and([
      where("payments.refund_of", "is", null),
      isCreatedAt(filter)(where),
      ...(network === undefined ? [] : [where("payments.network", "=", network)]),
      ...(asset === undefined ? [] : [where("payments.asset", "=", toLowerHex(asset))]),
      ...(routeId === undefined ? [] : [where("payments.route_id", "=", routeId)]),
      ...(payer === undefined ? [] : [where("payments.payer", "=", toLowerHex(payer))]),
    ]);
}

/**
 * Finds all ids, then takes the newest behind the cursor. In one step, or with a bound of the ids
 * in the first, a database would go along the ids. It might come to the oldest payment.
 */
async function readSorted(
  list: Listing,
  states: readonly PaymentFilter["state"][],
): Promise<Row[]> {
  const { reads, filter, limit, columns } = list;
  const rows: Row[][] = [];
  for (const state of states) {
    const wanted = state ?? filter.state;
    const found = await reads.db
      .with(
        (cte) => cte("found").materialized(),
        (db) =>
          db
            .selectFrom("payments")
            .select("payments.id")
            .where(matchesWithoutIds(list))
            .$if(wanted !== undefined, (query) =>
              wanted === undefined ? query : query.where("state", "=", is(wanted)),
            ),
      )
      .selectFrom("payments")
      .select(columns)
      .where("payments.id", "in", (query) =>
        query
          .selectFrom("found")
          .select("found.id")
          .where("found.id", "<", filter.cursor ?? afterAll)
          .orderBy("found.id", "desc")
          .limit(limit),
      )
      .orderBy("payments.id", "desc")
      .execute();
    rows.push(found);
  }
  return newest(list, rows);
}

/** Along the ids of a state. */
function readUnpaid(list: Listing, state: UnpaidPaymentsTable["state"]): Promise<Row[]> {
  const { reads, filter, limit, columns } = list;
  const range = createdIds(filter);
  const ofTimes = sortableIdAt(range.before);
  const [before = ofTimes] = [ofTimes, filter.cursor ?? ofTimes].sort();
  const ids = { columns: ["unpaid_payments.state", "unpaid_payments.payment_id"], equal: [state] };
  return (
    reads.db
      .selectFrom("unpaid_payments")
      // SQLite takes the tables of a cross join in this order.
      .crossJoin("payments")
      .select(columns)
      .whereRef("payments.id", "=", "unpaid_payments.payment_id")
      .where(isInRange(reads.dialect, { ...ids, from: sortableIdAt(range.from), before }))
      .where((where) =>
        isLeftToRows(
          where.and([
            where("payments.state", "=", where.ref("unpaid_payments.state")),
            matchesWithoutIds(list)(where),
          ]),
        ),
      )
      .orderBy("unpaid_payments.state", "desc")
      .orderBy("unpaid_payments.payment_id", "desc")
      .limit(limit)
      .execute()
  );
}

/**
 * Along the ids of some times, the newest first. Each statement has one bound at each end: an index
 * is entered by one, and with the cursor beside it a page would read all that is newer.
 */
async function readZones(list: Listing, zones: readonly IdTimes[]): Promise<Row[]> {
  const { reads, filter, limit, columns } = list;
  const { cursor = afterAll } = filter;
  const range = createdIds(filter);
  const rows: Row[] = [];
  for (const zone of zones) {
    if (rows.length >= limit) break;
    const from = sortableIdAt(Math.max(range.from, zone.from));
    const end = Math.min(range.before, zone.before);
    const ofTimes = Number.isFinite(end) ? sortableIdAt(end) : afterAll;
    const [before = afterAll] = [ofTimes, cursor].sort();
    if (from >= before) continue;
    const found = await reads.db
      .selectFrom("payments")
      .select(columns)
      .where(isInRange(reads.dialect, { columns: ["id"], from, before }))
      .where((where) =>
        isLeftToRows(
          where.and([
            matchesWithoutIds(list)(where),
            ...(filter.state === undefined ? [] : [where("state", "=", filter.state)]),
          ]),
        ),
      )
      .orderBy("id", "desc")
      .limit(limit - rows.length)
      .execute();
    rows.push(...found);
  }
  return rows;
}

/** Beyond every id: these are hexadecimal. */
const afterAll = "g";

/** The newest of several lists, each payment once. */
function newest({ limit }: Listing, lists: readonly Row[][]): Row[] {
  const rows = new Map(lists.flat().map((row) => [row.id, row]));
  return [...rows.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
}
