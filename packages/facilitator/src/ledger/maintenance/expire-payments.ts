import type { Network } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger-context.ts";
import {
  type ConcludedPayment,
  concludedColumns,
  toConcludedPayment,
} from "../payments/ledger-payment.ts";
import { is, timeIsOver } from "../states.ts";

/**
 * `queued` → `failed` for payments that can no longer be included in time. It is watched: the
 * buyer, or a transaction that carried the payment before, may have executed it all the same.
 *
 * @param options `before`: Unix seconds. Payments that are valid only before this time are over
 * @returns the payments that changed, in their current state.
 */
export function expirePayments(
  { write, dialect }: LedgerContext,
  { network, before }: { network: Network; before: bigint },
): Promise<ConcludedPayment[]> {
  return write(async (transaction) => {
    const rows = await transaction
      .updateTable("payments")
      .set({ state: "failed", reason: timeIsOver })
      .where("network", "=", network)
      .where("state", "=", is("queued"))
      .where("valid_before", "<=", dialect.amount.encode(before))
      .returning(concludedColumns)
      .execute();
    return rows.map((row) => toConcludedPayment(row, dialect));
  });
}

/**
 * Ends the watch over failed payments: used for something else, cancelled, or over at depth. A
 * payment whose time ran out before any transaction carried it is `expired` then.
 */
export async function closePayments(ledger: LedgerContext, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await ledger.write(async (transaction) => {
    await transaction
      .updateTable("payments")
      .set((set) => ({
        state: set
          .case()
          .when(set.and([set("carried", "=", 0), set("reason", "=", timeIsOver)]))
          .then("expired" as const)
          .else("failed" as const)
          .end(),
        closed_at: ledger.now(),
      }))
      .where("id", "in", [...ids])
      .where("state", "=", is("failed"))
      .execute();
  });
}
