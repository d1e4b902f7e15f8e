import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { renewHeartbeat } from "../maintenance/processes.ts";

/**
 * Counts a handler's run for a settled payment, before it begins. Returns `false` where the token
 * was taken away, so that a frozen process which wakes up runs nothing.
 *
 * Rejects where the answer to its commit is lost. The run may be counted then, and none begins. The
 * count errs towards a run that was not made, never towards an uncounted one. A buyer who has paid
 * loses one of two runs by it. Two such losses leave it `used_up`, with its receipt.
 *
 * Runs before a settlement need no write of their own: `enqueue`, `release` or the death of their
 * process counts them.
 */
export async function countRun(ledger: LedgerContext, token: string): Promise<boolean> {
  const { numUpdatedRows } = await ledger.write(async (transaction) => {
    // Awake again after a freeze, it would count as dead while its handler runs.
    await renewHeartbeat(ledger, transaction, { freshMs: ledger.heartbeatLeaseMs / 2 });
    return transaction
      .updateTable("payments")
      .set((set) => ({ runs: set("runs", "+", 1) }))
      .where("token", "=", token)
      .executeTakeFirst();
  }, forProcess);
  return numUpdatedRows > 0n;
}
