import type { Address } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Insertable, Transaction } from "kysely";
import type { LedgerSchema, OrdersTable } from "../schema.ts";

/**
 * The transfer to execute: the rest of the authorization, with the signature as the token wants it.
 */
export interface TransferOrder {
  payTo: Address;
  validAfter: bigint;
  signature: `0x${string}`;
}

/** The row of `orders` for a payment. */
export function orderRow(
  paymentId: string,
  order: TransferOrder,
  dialect: Dialect,
): Insertable<OrdersTable> {
  return {
    payment_id: paymentId,
    pay_to: order.payTo,
    valid_after: dialect.amount.encode(order.validAfter),
    signature: order.signature,
  };
}

/** Writes the transfer to execute, over an earlier one, for a payment that has failed before. */
export async function insertOrders(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  orders: readonly Insertable<OrdersTable>[];
}): Promise<void> {
  const { transaction, dialect, orders } = options;
  await dialect.insertMany<LedgerSchema, "orders">(transaction, "orders", orders, {
    keys: ["payment_id"],
    replace: ["pay_to", "valid_after", "signature"],
  });
}
