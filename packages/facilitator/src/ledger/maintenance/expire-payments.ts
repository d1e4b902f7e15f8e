import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import { type LedgerPayment, toLedgerPayment } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";
import { is, timeIsOver } from "../states.ts";

/**
 * `queued` → `failed` for payments that can no longer be included in time. The buyer, or a
 * transaction that carried the payment before, may have executed it all the same, so it is watched.
 *
 * @returns the payments that changed, in their current state.
 */
export async function expirePayments(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  /** Unix seconds: payments that are valid only before this time are over. */
  before: bigint;
}): Promise<LedgerPayment[]> {
  const { transaction, dialect, network, before } = options;
  const rows = await transaction
    .updateTable("payments")
    .set({ state: "failed", reason: timeIsOver })
    .where("network", "=", network)
    .where("state", "=", is("queued"))
    .where("valid_before", "<=", dialect.amount.encode(before))
    .returningAll()
    .execute();
  return rows.map((row) => toLedgerPayment(row, dialect));
}

/**
 * Ends the watch over failed payments: used for something else, cancelled, or over at depth. A
 * payment whose time ran out before any transaction carried it is `expired` then.
 */
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
    .set((set) => ({
      state: set
        .case()
        .when(set.and([set("carried", "=", 0), set("reason", "=", timeIsOver)]))
        .then("expired" as const)
        .else("failed" as const)
        .end(),
      closed_at: now,
    }))
    .where("id", "in", [...ids])
    .where("state", "=", is("failed"))
    .execute();
}
