import { type Hex, toLowerHex } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Selectable, type SqlBool, sql } from "kysely";
import { hexToBytes } from "viem";
import type { LedgerReads } from "../ledger-context.ts";
import { deliveredAtOf, type LedgerPayment } from "../payments/ledger-payment.ts";
import { type ArchivedPaymentsTable, openStates } from "../schema.ts";
import { sortableIdAt } from "../sortable-id.ts";
import { createdIds, type IdTimes } from "./created-range.ts";
import { findZones } from "./find-zones.ts";
import { isInRange, isLeftToRows } from "./index-order.ts";
import type { PaymentFilter } from "./list-payments.ts";
import { findRoute, type ScannedPayment } from "./read-newest.ts";

/** An archived payment by its id. */
export async function getArchived(
  { db, dialect }: LedgerReads,
  id: string,
): Promise<LedgerPayment | undefined> {
  const row = await db
    .selectFrom("archived_payments")
    .select(columns)
    .where("id", "=", id)
    .executeTakeFirst();
  return row && toArchivedPayment(row, dialect);
}

/** Archived payments by their ids, in any order. */
export async function getArchivedAll(
  { db, dialect }: LedgerReads,
  ids: readonly string[],
): Promise<LedgerPayment[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("archived_payments")
    .select(columns)
    .where("id", "in", dialect.among(ids))
    .execute();
  return rows.map((row) => toArchivedPayment(row, dialect));
}

/** A part of the archived payments of a filter. */
interface ArchivedBounds {
  /** Only payments with larger ids. */
  above: string | undefined;
  limit: number;
}

/**
 * The newest archived payments of a filter, by the way that costs the least. A payer's, and those
 * that are not confirmed, have an index. Of a network, asset or route, and confirmed ones, along
 * the ids of those days whose sums have such payments. All others along the ids.
 */
export async function readArchived(
  reads: LedgerReads,
  filter: PaymentFilter,
  bounds: ArchivedBounds,
): Promise<LedgerPayment[]> {
  const rows = await readRows(reads, { filter, ...bounds }, (query) => query.execute());
  return rows.map((row) => toArchivedPayment(row, reads.dialect));
}

/** As `readArchived`: of each payment the members that a search compares, which have no index. */
export function scanArchived(
  reads: LedgerReads,
  filter: PaymentFilter,
  bounds: ArchivedBounds,
): Promise<ScannedPayment[]> {
  return readRows(reads, { filter, ...bounds }, (query) =>
    query.clearSelect().select(["id", "wire", "pay_to_id"]).execute(),
  );
}

/** @param execute runs one of the statements, with the columns that it wants */
async function readRows<Row>(
  reads: LedgerReads,
  { filter, above, limit }: ArchivedBounds & { filter: PaymentFilter },
  execute: (query: ReturnType<typeof selectArchived>) => Promise<Row[]>,
): Promise<Row[]> {
  const { payer, state, route, network, asset, cursor } = filter;
  // No open payment is archived.
  if (openStates.some((open) => open === state)) return [];
  const routeId = route === undefined ? undefined : await findRoute(reads, route);
  if (routeId === null) return [];
  const hasSums = network !== undefined || asset !== undefined || routeId !== undefined;
  const isSpread = payer === undefined && (state === "confirmed" || (!state && hasSums));
  const zones = isSpread ? await findZones(reads, { ...filter, routeId }) : [createdIds({})];
  const range = createdIds(filter);
  const found: Row[] = [];
  for (const zone of zones) {
    if (found.length >= limit) break;
    if (zone.from >= range.before || zone.before <= range.from) continue;
    if (cursor !== undefined && cursor <= sortableIdAt(zone.from)) continue;
    // Older zones hold nothing newer than the rows that the caller has.
    if (above !== undefined && Number.isFinite(zone.before) && sortableIdAt(zone.before) <= above)
      break;
    const bounds = { above, routeId, zone, limit: limit - found.length };
    found.push(...(await execute(selectArchived(reads, filter, bounds))));
  }
  return found;
}

/** A statement of `readArchived`, along the index of a payer, of unpaid payments or of ids. */
export function selectArchived(
  { db, dialect }: LedgerReads,
  filter: PaymentFilter,
  { above, routeId, zone, limit }: ArchivedBounds & { routeId: number | undefined; zone: IdTimes },
) {
  const { network, asset, payer, state, createdFrom, createdBefore, cursor } = filter;
  const range = createdIds(filter);
  const ofTimes = sortableIdAt(Math.max(range.from, zone.from));
  const end = sortableIdAt(Math.min(range.before, zone.before));
  const ids = {
    // A payment that is not archived has the id `above`.
    from: above !== undefined && above > ofTimes ? above : ofTimes,
    before: cursor !== undefined && cursor < end ? cursor : end,
  };
  const query = db.selectFrom("archived_payments").select(columns).limit(limit);
  const matching = query.where((where) =>
    isLeftToRows(
      where.and([
        where("refund_of", "is", null),
        ...(createdFrom === undefined ? [] : [where("created_at", ">=", createdFrom)]),
        ...(createdBefore === undefined ? [] : [where("created_at", "<", createdBefore)]),
        ...(network === undefined ? [] : [where("network", "=", network)]),
        ...(asset === undefined ? [] : [where("asset", "=", hexToBytes(toLowerHex(asset)))]),
        ...(routeId === undefined ? [] : [where("route_id", "=", routeId)]),
        ...(state === undefined ? [] : [where("state", "=", state)]),
      ]),
    ),
  );
  if (payer !== undefined) {
    const equal = [hexToBytes(toLowerHex(payer))];
    return matching
      .where(isInRange(dialect, { columns: ["payer", "id"], equal, ...ids }))
      .orderBy("payer", "desc")
      .orderBy("id", "desc");
  }
  if (state !== undefined && state !== "confirmed") {
    return (
      matching
        // The very condition of their index, which is over few rows.
        .where(isUnpaid)
        .where(isInRange(dialect, { columns: ["state", "id"], equal: [state], ...ids }))
        .orderBy("state", "desc")
        .orderBy("id", "desc")
    );
  }
  return matching.where(isInRange(dialect, { columns: ["id"], ...ids })).orderBy("id", "desc");
}

const isUnpaid = sql<SqlBool>`state in ('failed', 'expired', 'released')`;

/** SQLite reads `*` in twice the time, since the names behind it follow the schema. */
const columns = [
  "id",
  "network",
  "asset",
  "authority",
  "payer",
  "nonce",
  "value",
  "valid_before",
  "state",
  "scheme",
  "carried",
  "runs",
  "block_number",
  "block_hash",
  "transaction_hash",
  "reason",
  "created_at",
  "queued_at",
  "submitted_at",
  "confirmed_at",
  "final_at",
  "delivered_at",
  "closed_at",
  "refund_started_at",
  "refund_of",
] as const satisfies readonly (keyof ArchivedPaymentsTable)[];

type ArchivedRow = Pick<Selectable<ArchivedPaymentsTable>, (typeof columns)[number]>;

function toArchivedPayment(row: ArchivedRow, dialect: Dialect): LedgerPayment {
  const [blockHash, transactionHash] = [hexOf(row.block_hash), hexOf(row.transaction_hash)];
  const authority = hexOf(row.authority);
  return {
    id: row.id,
    kind: row.scheme,
    authorization: {
      network: row.network,
      asset: toHex(row.asset),
      ...(authority ? { authority } : {}),
      payer: toHex(row.payer),
      nonce: toHex(row.nonce),
    },
    value: dialect.amount.decode(row.value),
    validBefore: dialect.amount.decode(row.valid_before),
    state: row.state,
    fingerprint: "",
    keyHash: undefined,
    unusedAtBlock: undefined,
    transactionId: undefined,
    attempts: row.carried,
    runs: row.runs,
    settlesAlone: false,
    inclusion:
      transactionHash === undefined || row.block_number === null || blockHash === undefined
        ? undefined
        : { transactionHash, blockNumber: row.block_number, blockHash },
    reason: row.reason ?? undefined,
    createdAt: row.created_at,
    queuedAt: row.queued_at ?? undefined,
    submittedAt: row.submitted_at ?? undefined,
    confirmedAt: row.confirmed_at ?? undefined,
    finalAt: row.final_at ?? undefined,
    deliveredAt: deliveredAtOf(row),
    closedAt: row.closed_at ?? undefined,
    refundStartedAt: row.refund_started_at ?? undefined,
    refundOf: row.refund_of ?? undefined,
    isPruned: true,
  };
}

function hexOf(bytes: Uint8Array | null): Hex | undefined {
  return bytes === null ? undefined : toHex(bytes);
}

/** A page has thousands of these. */
function toHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;
}
