import type { Selectable, SelectQueryBuilder } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import { type LedgerPayment, paymentColumns, toLedgerPayment } from "../payments/ledger-payment.ts";
import type { TransferOrder } from "../payments/transfer-order.ts";
import type { LedgerSchema, PaymentsTable } from "../schema.ts";

/** The part of a payment that is needed to carry it to the chain, and to find it there. */
export type PendingPayment = Pick<
  LedgerPayment,
  | "id"
  | "kind"
  | "authorization"
  | "value"
  | "validBefore"
  | "fingerprint"
  | "unusedAtBlock"
  | "transactionId"
  | "attempts"
  | "settlesAlone"
  | "inclusion"
>;

/** A payment with its transfer order. */
export interface OrderedPayment {
  payment: PendingPayment;
  order: TransferOrder;
}

/** A choice of payments. */
export type PaymentQuery = SelectQueryBuilder<LedgerSchema, "payments", Selectable<PaymentsTable>>;

/**
 * Payments with their orders, by their ids. `where` does not choose the first of them by the id.
 * PostgreSQL goes through all payments in that order if it expects to find enough soon.
 */
export async function findOrders(
  { db, dialect }: LedgerReads,
  where: (query: PaymentQuery) => PaymentQuery,
): Promise<OrderedPayment[]> {
  const rows = await db
    // First the payments: expecting many of them, PostgreSQL would go through all orders beside
    // them.
    .selectFrom(where(db.selectFrom("payments").selectAll()).as("payments"))
    .innerJoin("orders", "orders.payment_id", "payments.id")
    .select(paymentColumns)
    .select(["pay_to", "valid_after", "signature"])
    .orderBy("payments.id")
    .execute();
  return rows.map((row) => ({
    payment: toLedgerPayment(row, dialect),
    order: {
      payTo: row.pay_to,
      validAfter: dialect.amount.decode(row.valid_after),
      signature: row.signature,
    },
  }));
}
