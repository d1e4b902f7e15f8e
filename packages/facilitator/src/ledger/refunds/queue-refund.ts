import type { Address, BalanceReading, Hex } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { isFloatStopped } from "../maintenance/stops.ts";
import { findCommitments } from "../payments/committed-balance.ts";
import { lockPayers } from "../payments/lock-payers.ts";
import { reservationRow } from "../payments/reservation-row.ts";
import type { ReserveRequest } from "../payments/reserve-request.ts";
import { insertOrders, orderRow } from "../payments/transfer-order.ts";
import { dayOf } from "../queries/created-range.ts";
import type { LedgerSchema } from "../schema.ts";
import { createSortableId } from "../sortable-id.ts";
import { writeRefund } from "./move-refund.ts";
import {
  findRefundedPayment,
  findRefundsOf,
  latestEnd,
  type RefundRow,
  sumOfRefunds,
} from "./refund-row.ts";

/** A signed refund, with the chain's word about its float. */
export interface SignedRefund {
  float: Address;
  /** Unix seconds. */
  validBefore: bigint;
  signature: Hex;
  /** Of the float, at the block at whose end its nonce was unused. */
  balance: BalanceReading;
  maxPerDay: bigint;
}

/** Result of an attempt to queue: the operation's id, or the reason to wait. */
export type QueuedRefund =
  | { outcome: "queued"; operation: string }
  | { outcome: "float_balance" | "daily_limit" | "stopped" | "changed" };

/**
 * Writes a signed refund and its operation in one database transaction. The locks are the payment's
 * row, then the float's. Under them, all is checked again. Of the refund: its state, its payment,
 * and the sum of earlier refunds. Of the float: its stop switch, its committed balance and its day.
 */
export function queueRefund(
  ledger: LedgerContext,
  row: RefundRow,
  signed: SignedRefund,
): Promise<QueuedRefund> {
  return ledger.write((transaction) => queue(ledger, transaction, row, signed));
}

async function queue(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  row: RefundRow,
  signed: SignedRefund,
): Promise<QueuedRefund> {
  const { dialect } = ledger;
  const reads = { db: transaction, dialect };
  const { float, validBefore, signature } = signed;
  const now = ledger.now();
  const payment = await findRefundedPayment(reads, row.payment_id, { lock: true });
  const others = (await findRefundsOf(reads, row.payment_id)).filter(({ id }) => id !== row.id);
  const earlier = others.filter(({ n }) => n < row.n);
  const value = dialect.amount.decode(row.amount);
  if (
    payment?.state !== "confirmed" ||
    !payment.isFinal ||
    earlier.some(({ state }) => state !== "final" && state !== "void") ||
    sumOfRefunds(earlier, dialect) + value > payment.value
  ) {
    return { outcome: "changed" };
  }
  await lockPayers({ transaction, dialect, payers: [float], now });
  if (await isFloatStopped(transaction, float)) return { outcome: "stopped" };
  if (!(await isWithinDay(ledger, transaction, row, { ...signed, value }))) {
    return { outcome: "daily_limit" };
  }
  const request: ReserveRequest = {
    id: { network: row.network, asset: row.asset, payer: float, nonce: row.nonce },
    fingerprint: `refund ${row.id}`,
    value,
    validBefore,
    payTo: row.payer,
    balance: signed.balance,
    order: { payTo: row.payer, validAfter: 0n, signature },
    paymentId: createSortableId(now),
    token: "",
  };
  const known = await transaction
    .selectFrom("payments")
    .selectAll()
    .where("nonce", "=", row.nonce)
    .where("payer", "=", float)
    .where("asset", "=", row.asset)
    .where("network", "=", row.network)
    .$call(dialect.forUpdate)
    .executeTakeFirst();
  if (known !== undefined && !isOver(known)) return { outcome: "changed" };
  const commitments = await findCommitments({
    transaction,
    dialect,
    requests: [request],
    alreadyDebited: [],
  });
  if (!commitments.fits(request, 0n)) return { outcome: "float_balance" };
  const operation = known?.id ?? request.paymentId;
  const isMoved = await writeRefund(transaction, row, {
    state: "sent",
    cause: null,
    float,
    valid_before: latestEnd(row, validBefore, dialect),
    operation_id: operation,
    signed_at: row.signed_at ?? now,
    transaction_hash: null,
    block_number: null,
    block_hash: null,
    confirmed_at: null,
    next_at: now,
  });
  if (!isMoved) return { outcome: "changed" };
  const fresh = {
    ...reservationRow({ request, dialect, owner: ledger.processId, now, runs: 0 }),
    // No process holds it, so none releases it.
    token: null,
    owner: null,
    refund_of: row.payment_id,
    // It is no sale: nobody resumes it.
    delivered_at: now,
  };
  if (known === undefined) await transaction.insertInto("payments").values(fresh).execute();
  else {
    const { id: _, created_at: __, ...changed } = fresh;
    await transaction
      .updateTable("payments")
      .set({
        ...changed,
        reason: null,
        transaction_id: null,
        transaction_hash: null,
        block_number: null,
        block_hash: null,
        submitted_at: null,
        closed_at: null,
      })
      .where("id", "=", known.id)
      .execute();
  }
  await insertOrders({
    transaction,
    dialect,
    orders: [orderRow(operation, { payTo: row.payer, validAfter: 0n, signature }, dialect)],
  });
  return { outcome: "queued", operation };
}

/** No transaction carries its last form, and none ever can. */
function isOver({
  state,
  closed_at,
  refund_of,
}: {
  state: string;
  closed_at: number | null;
  refund_of: string | null;
}): boolean {
  if (refund_of === null) return false;
  return state === "expired" || (state === "failed" && closed_at !== null);
}

/**
 * The day's refunds of the float, under its lock. A refund counts on the day of its first form. One
 * of a later day does not: a clock far ahead has signed it.
 */
async function isWithinDay(
  { dialect, now }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  row: RefundRow,
  signed: SignedRefund & { value: bigint },
): Promise<boolean> {
  if (row.signed_at !== null) return true;
  const day = dayOf(now());
  const rows = await transaction
    .selectFrom("refunds")
    .select("amount")
    .where("signed_at", ">=", day.from)
    .where("signed_at", "<", day.before)
    .where("float", "=", signed.float)
    .where("network", "=", row.network)
    .where("asset", "=", row.asset)
    .where("state", "!=", "void")
    .execute();
  const given = rows.reduce((sum, { amount }) => sum + dialect.amount.decode(amount), 0n);
  return given + signed.value <= signed.maxPerDay;
}
