import type { LedgerContext } from "../ledger-context.ts";
import { is } from "../states.ts";

/**
 * `failed` → `queued`: the operation of a refund, under the same authorization. It keeps its order,
 * its reason and its count of attempts, as a payment that is reserved again. Not one that is
 * closed.
 */
export async function requeueRefund(ledger: LedgerContext, operation: string): Promise<boolean> {
  const { numUpdatedRows } = await ledger.write((transaction) =>
    transaction
      .updateTable("payments")
      .set({
        state: "queued",
        queued_at: ledger.now(),
        transaction_id: null,
        transaction_hash: null,
        block_number: null,
        block_hash: null,
        submitted_at: null,
      })
      .where("id", "=", operation)
      .where("state", "=", is("failed"))
      .where("closed_at", "is", null)
      .where("refund_of", "is not", null)
      .executeTakeFirst(),
  );
  return numUpdatedRows > 0n;
}
