import type { Dialect } from "@coinslot/storage";
import type { Kysely, Selectable, SelectQueryBuilder } from "kysely";
import { type LedgerPayment, toLedgerPayment } from "./ledger-payment.ts";
import type { LedgerSchema, OrdersTable, PaymentsTable } from "./ledger-schema.ts";
import type { Order } from "./order.ts";

/** A payment with what is to be executed for it. */
export interface OrderedPayment {
  payment: LedgerPayment;
  order: Order;
}

type OrderRow = Selectable<PaymentsTable> & Selectable<OrdersTable>;
type OrderQuery = SelectQueryBuilder<LedgerSchema, "payments" | "orders", OrderRow>;

/** Payments with their orders, in the order of their creation. */
export async function findOrders(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  where: (query: OrderQuery) => OrderQuery;
}): Promise<OrderedPayment[]> {
  const { db, dialect, where } = options;
  const query = db
    .selectFrom("payments")
    .innerJoin("orders", "orders.payment_id", "payments.id")
    .selectAll("payments")
    .selectAll("orders")
    .orderBy("payments.id");
  const rows = await where(query).execute();
  return rows.map((row) => ({
    payment: toLedgerPayment(row, dialect),
    order: {
      payTo: row.pay_to,
      validAfter: dialect.amount.decode(row.valid_after),
      signature: row.signature,
    },
  }));
}
