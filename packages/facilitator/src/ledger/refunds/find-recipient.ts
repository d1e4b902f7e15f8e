import type { Address } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";

/** The recipient of a payment, archived or not; `undefined` where the ledger has none. */
export async function findRecipient(
  { db }: LedgerReads,
  paymentId: string,
): Promise<Address | undefined> {
  const order = await db
    .selectFrom("orders")
    .select("pay_to")
    .where("payment_id", "=", paymentId)
    .executeTakeFirst();
  if (order !== undefined) return order.pay_to;
  for (const table of ["payments", "archived_payments"] as const) {
    const named = await db
      .selectFrom(table)
      .innerJoin("sold_names", "sold_names.id", `${table}.pay_to_id`)
      .select("name")
      .where(`${table}.id`, "=", paymentId)
      .executeTakeFirst();
    if (named !== undefined) return named.name as Address;
  }
  return undefined;
}
