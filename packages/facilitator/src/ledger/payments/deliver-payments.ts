import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import type { LedgerSchema } from "../schema.ts";

/**
 * Records that the answers of these reservations have gone out. No effect for a reservation that
 * was lost meanwhile.
 */
export async function deliverPayments(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  tokens: readonly string[];
  /** Unix milliseconds. */
  now: number;
}): Promise<void> {
  await options.transaction
    .updateTable("payments")
    .set({ delivered_at: options.now, token: null, owner: null })
    .where("token", "in", options.dialect.among(options.tokens))
    .where("delivered_at", "is", null)
    .execute();
}
