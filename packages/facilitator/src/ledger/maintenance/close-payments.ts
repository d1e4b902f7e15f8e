import type { LedgerContext } from "../ledger-context.ts";
import { is, timeIsOver } from "../states.ts";

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
