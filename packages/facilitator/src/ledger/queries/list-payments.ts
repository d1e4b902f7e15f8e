import { type Address, type Network, toLowerHex } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import {
  type ConcludedPayment,
  concludedColumns,
  type LedgerPayment,
  toConcludedPayment,
  toLedgerPayment,
} from "../payments/ledger-payment.ts";
import type { PaymentState } from "../schema.ts";

/** Filter for a list of payments. */
export interface PaymentFilter {
  state?: PaymentState | undefined;
  network?: Network | undefined;
  /** In any letter case. */
  payer?: Address | undefined;
  /** Unix milliseconds: created at or after. */
  createdFrom?: number | undefined;
  /** Unix milliseconds: created before. */
  createdBefore?: number | undefined;
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

/** Lists payments, the newest first. */
export async function listPayments(
  { db, dialect }: LedgerReads,
  filter: PaymentFilter,
): Promise<PaymentPage> {
  const limit = Math.min(Math.max(filter.limit ?? 100, 1), 1000);
  let query = db
    .selectFrom("payments")
    .selectAll()
    .orderBy("id", "desc")
    .limit(limit + 1);
  if (filter.state) query = query.where("state", "=", filter.state);
  if (filter.network) query = query.where("network", "=", filter.network);
  if (filter.payer) query = query.where("payer", "=", toLowerHex(filter.payer));
  if (filter.createdFrom) query = query.where("created_at", ">=", filter.createdFrom);
  if (filter.createdBefore) query = query.where("created_at", "<", filter.createdBefore);
  if (filter.cursor) query = query.where("id", "<", filter.cursor);
  const rows = await query.execute();
  const payments = rows.slice(0, limit).map((row) => toLedgerPayment(row, dialect));
  return { payments, nextCursor: rows.length > limit ? payments.at(-1)?.id : undefined };
}

/** Payments by their ids. */
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
