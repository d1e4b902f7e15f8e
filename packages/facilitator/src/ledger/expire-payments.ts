import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import { type LedgerPayment, toLedgerPayment } from "./ledger-payment.ts";
import type { LedgerSchema } from "./ledger-schema.ts";
import { is } from "./states.ts";

/**
 * `queued` → `expired` for what can no longer be included in time. A payment that a transaction has
 * carried before may still be executed by that one, so it becomes `failed`, which is watched; and so
 * does one that had failed before.
 *
 * @returns the payments that changed, as they stand now.
 */
export async function expirePayments(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  /** Unix seconds: what is valid only before this is over. */
  before: bigint;
}): Promise<LedgerPayment[]> {
  const { transaction, dialect, network, before } = options;
  const rows = await transaction
    .updateTable("payments")
    .set((set) => ({
      state: set
        .case()
        .when(set.and([set("carried", "=", 0), set("reason", "is", null)]))
        .then("expired" as const)
        .else("failed" as const)
        .end(),
      reason: "invalid_exact_evm_payload_authorization_valid_before",
    }))
    .where("network", "=", network)
    .where("state", "=", is("queued"))
    .where("valid_before", "<=", dialect.amount.encode(before))
    .returningAll()
    .execute();
  return rows.map((row) => toLedgerPayment(row, dialect));
}

/** Ends the watch over failed payments: used for something else, cancelled, or over at depth. */
export async function closePayments(options: {
  transaction: Transaction<LedgerSchema>;
  ids: readonly string[];
  /** Unix milliseconds. */
  now: number;
}): Promise<void> {
  const { transaction, ids, now } = options;
  if (ids.length === 0) return;
  await transaction
    .updateTable("payments")
    .set({ closed_at: now })
    .where("id", "in", [...ids])
    .where("state", "=", is("failed"))
    .execute();
}
