import type { Address, Network } from "@coinslot/protocol";
import { type SqlBool, sql, type Transaction, type Updateable } from "kysely";
import type { LedgerContext, LedgerReads } from "../ledger-context.ts";
import type { RefundState, RefundsTable } from "../refunds-schema.ts";
import type { LedgerSchema } from "../schema.ts";
import { sortableIdAt } from "../sortable-id.ts";
import type { RefundRow } from "./refund-row.ts";

/** Written out, as in their partial index: SQLite uses it for no other form of the condition. */
const isOpen = sql<SqlBool>`state not in ('final', 'void')`;

/** Times of the next looks; `undefined` where nothing is to be looked at. */
export interface NextLooks {
  refundAt: number | undefined;
  undeliveredAt: number | undefined;
}

/** Delay of a refundable payment's route, in milliseconds. */
const afterMs = sql<number>`1000 * coalesce(
  (select refund_after from payments where payments.id = refundable_payments.payment_id), 0)`;

/** Times of the next looks at the refunds of some networks, and at undelivered payments. */
export async function findNextLooks(
  { db, dialect }: LedgerReads,
  networks: readonly Network[],
): Promise<NextLooks> {
  const none = sql<SqlBool>`1 = 0`;
  const row = await db
    .selectNoFrom((select) => {
      return [
        select
          .selectFrom("refunds")
          .select("next_at")
          .where(isOpen)
          .where((where) =>
            networks.length === 0 ? none : where("network", "in", dialect.among(networks)),
          )
          .orderBy("next_at")
          .limit(1)
          .as("refund_at"),
        select
          .selectFrom("refundable_payments")
          .select("due_at")
          .orderBy("due_at")
          .limit(1)
          .as("undelivered_at"),
      ];
    })
    .executeTakeFirst();
  return {
    refundAt: row?.refund_at ?? undefined,
    undeliveredAt: row?.undelivered_at ?? undefined,
  };
}

/**
 * Recalls refunds and undelivered payments that wait longer than any can: the clock of the process
 * that wrote them was far ahead. A payment waits for its route's delay again. Where this process's
 * clock is behind instead, a look by a right one restores the time of its sale.
 *
 * Payments within their route's delay are many, and none of them is read. So one that was sold by a
 * right clock is found only where its time is past `latestDue`.
 *
 * @param bounds `latest`: of a refund. `latestFrom`: of a payment, without its route's delay;
 * `latestDue`: with the longest one
 * @returns their number
 */
export async function recallRefunds(
  ledger: LedgerContext,
  bounds: { latest: number; latestFrom: number; latestDue: number; now: number },
): Promise<number> {
  const { latest, latestFrom, latestDue, now } = bounds;
  return ledger.write(async (transaction) => {
    const recallAbove = (column: "payment_id" | "due_at", bound: string | number) =>
      transaction
        .updateTable("refundable_payments")
        .set({ due_at: sql`${now} + ${afterMs}` })
        .where(column, ">", bound)
        // Without its route's delay: about the time of its sale, or of a look.
        .where(sql<number>`due_at - ${afterMs}`, ">", latestFrom)
        .executeTakeFirst();
    const refunds = await transaction
      .updateTable("refunds")
      .set({ next_at: now })
      .where(isOpen)
      .where("next_at", ">", latest)
      .executeTakeFirst();
    // Ids begin with the time of the sale.
    const sold = await recallAbove("payment_id", sortableIdAt(latestFrom));
    const postponed = await recallAbove("due_at", latestDue);
    return Number(refunds.numUpdatedRows + sold.numUpdatedRows + postponed.numUpdatedRows);
  });
}

/** The next refunds of a network to look at, those that are due first. */
export function findDueRefunds(
  { db }: LedgerReads,
  { now, network, limit }: { now: number; network: Network; limit: number },
): Promise<RefundRow[]> {
  return db
    .selectFrom("refunds")
    .selectAll()
    .where(isOpen)
    .where("next_at", "<=", now)
    .where("network", "=", network)
    .orderBy("next_at")
    .limit(limit)
    .execute();
}

/** Accounts that have signed a refund, or were asked to. */
export async function findFloats({ db }: LedgerReads): Promise<Address[]> {
  const rows = await db
    .selectFrom("refunds")
    .select("float")
    .distinct()
    .where("float", "is not", null)
    .execute();
  return rows.flatMap(({ float }) => float ?? []);
}

/** A change of a refund, from the row as it was read. */
export type RefundChange = Updateable<RefundsTable> & { state: RefundState };

/**
 * Changes a refund, unless it is another one than was read: in another state, signed since, or by
 * another transaction.
 * The racers are two workers, and an operator's word.
 */
export async function moveRefund(
  ledger: LedgerContext,
  row: RefundRow,
  change: RefundChange,
): Promise<boolean> {
  return ledger.write((transaction) => writeRefund(transaction, row, change));
}

/** As `moveRefund`, inside a transaction. */
export async function writeRefund(
  transaction: Transaction<LedgerSchema>,
  row: RefundRow,
  change: RefundChange,
): Promise<boolean> {
  const { numUpdatedRows } = await transaction
    .updateTable("refunds")
    .set(change)
    .where("id", "=", row.id)
    .where("state", "=", row.state)
    .where("float", row.float === null ? "is" : "=", row.float)
    .where("valid_before", row.valid_before === null ? "is" : "=", row.valid_before)
    .where("operation_id", row.operation_id === null ? "is" : "=", row.operation_id)
    .where("transaction_hash", row.transaction_hash === null ? "is" : "=", row.transaction_hash)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
