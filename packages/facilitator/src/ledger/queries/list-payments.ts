import type { Address, Network } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import { inSnapshot } from "../ledger-reads.ts";
import {
  type ConcludedPayment,
  concludedColumns,
  type LedgerPayment,
  toConcludedPayment,
  toLedgerPayment,
} from "../payments/ledger-payment.ts";
import type { PaymentState } from "../schema.ts";
import type { CreatedRange } from "./created-range.ts";
import { getArchived, getArchivedAll, readArchived, scanArchived } from "./find-archived.ts";
import { readNewest, type ScannedPayment, scanNewest } from "./read-newest.ts";

/** Filter for a list of payments. */
export interface PaymentFilter extends CreatedRange {
  state?: PaymentState | undefined;
  network?: Network | undefined;
  /** In any letter case. */
  asset?: Address | undefined;
  /** As the routes were configured, such as `GET /weather`. */
  route?: string | undefined;
  /** In any letter case. */
  payer?: Address | undefined;
  /** The `nextCursor` of the page before. */
  cursor?: string | undefined;
  /** Between 1 and 1000. Default 100. */
  limit?: number | undefined;
}

/** One page of payments, the newest first. */
export interface PaymentPage {
  payments: LedgerPayment[];
  /** Pass it as `cursor` for the next page; `undefined` on the last one. */
  nextCursor: string | undefined;
}

/**
 * Rows fetched at once: what arrives is decoded on the event loop of a seller. A page of 100 and
 * the row behind it are one part.
 */
const chunkRows = 101;

/** Lists payments, the newest first. README.md, "Lists", gives the cost of each filter. */
export async function listPayments(
  reads: LedgerReads,
  filter: PaymentFilter,
): Promise<PaymentPage> {
  const limit = Math.min(Math.max(filter.limit ?? 100, 1), 1000);
  const found: LedgerPayment[] = [];
  let { cursor } = filter;
  let isMore = true;
  while (isMore && found.length <= limit) {
    const wanted = Math.min(limit + 1 - found.length, chunkRows);
    const part = { ...filter, cursor };
    const read = () => readBoth(reads, part, wanted);
    // The beginning of a list is for a person, or a probe.
    const rows = await (cursor === undefined || !reads.pace ? read() : reads.pace.run(read));
    found.push(...rows);
    cursor = found.at(-1)?.id;
    isMore = rows.length === wanted;
  }
  const payments = found.slice(0, limit);
  return { payments, nextCursor: found.length > limit ? payments.at(-1)?.id : undefined };
}

/** The newest payments of a filter, archived or not, of one moment. */
function readBoth(
  reads: LedgerReads,
  filter: PaymentFilter,
  limit: number,
): Promise<LedgerPayment[]> {
  return inSnapshot(reads, async (snapshot) => {
    const rows = await readNewest(snapshot, filter, limit);
    const above = rows.length === limit ? rows.at(-1)?.id : undefined;
    const archived = await readArchived(snapshot, filter, { above, limit });
    return [...rows.map((row) => toLedgerPayment(row, reads.dialect)), ...archived]
      .sort((one, other) => (one.id < other.id ? 1 : -1))
      .slice(0, limit);
  });
}

/**
 * The newest payments of a filter, archived or not, with the members alone that have no index. The
 * whole payments are read by their ids: `getAll`.
 */
export function scanPayments(
  reads: LedgerReads,
  filter: PaymentFilter,
  limit: number,
): Promise<ScannedPayment[]> {
  return inSnapshot(reads, async (snapshot) => {
    const rows = await scanNewest(snapshot, filter, limit);
    const above = rows.length === limit ? rows.at(-1)?.id : undefined;
    const archived = await scanArchived(snapshot, filter, { above, limit });
    return [...rows, ...archived]
      .sort((one, other) => (one.id < other.id ? 1 : -1))
      .slice(0, limit);
  });
}

/** Payments by their ids, archived or not, the newest first. */
export function getAll(reads: LedgerReads, ids: readonly string[]): Promise<LedgerPayment[]> {
  return inSnapshot(reads, async (snapshot) => {
    const current = await getPayments(snapshot, ids);
    const known = new Set(current.map(({ id }) => id));
    const archived = await getArchivedAll(
      snapshot,
      ids.filter((id) => !known.has(id)),
    );
    return [...current, ...archived].sort((one, other) => (one.id < other.id ? 1 : -1));
  });
}

/** A payment by its id, archived or not. */
export function getPayment(reads: LedgerReads, id: string): Promise<LedgerPayment | undefined> {
  return inSnapshot(reads, async (snapshot) => {
    const [payment] = await getPayments(snapshot, [id]);
    return payment ?? getArchived(snapshot, id);
  });
}

/** Payments by their ids, without archived ones. */
export async function getPayments(
  { db, dialect }: LedgerReads,
  ids: readonly string[],
): Promise<LedgerPayment[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("payments")
    .selectAll()
    .where("id", "in", dialect.among(ids))
    .execute();
  return rows.map((row) => toLedgerPayment(row, dialect));
}

/** As `getPayments`, for waiters: each with the token that holds it. */
export async function getConcluded(
  { db, dialect }: LedgerReads,
  ids: readonly string[],
): Promise<ConcludedPayment[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("payments")
    .select(concludedColumns)
    .where("id", "in", dialect.among(ids))
    .execute();
  return rows.map((row) => toConcludedPayment(row, dialect));
}
