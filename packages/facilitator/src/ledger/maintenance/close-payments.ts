import type { LedgerContext } from "../ledger-context.ts";
import { findLost } from "../queries/find-lost.ts";
import { is, timeIsOver } from "../states.ts";

/** A sale that was final, and has ended without its money. */
export interface LostPayment {
  id: string;
  /** Its answer had gone out. */
  wasDelivered: boolean;
}

/**
 * Ends the watch over failed payments: used for something else, cancelled, or over at depth. A
 * payment whose time ran out before any transaction carried it is `expired` then.
 *
 * @returns those that are lost: they had been final. The books have their entries.
 */
export async function closePayments(
  ledger: LedgerContext,
  ids: readonly string[],
): Promise<LostPayment[]> {
  if (ids.length === 0) return [];
  const { dialect } = ledger;
  return ledger.write(async (transaction) => {
    const rows = await transaction
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
      .returning(["id", "state", "closed_at", "refund_of", "delivered_at"])
      .execute();
    const lost = await findLost({ db: transaction, dialect }, rows);
    return rows.flatMap(({ id, delivered_at }) =>
      lost.has(id) ? [{ id, wasDelivered: delivered_at !== null }] : [],
    );
  });
}
