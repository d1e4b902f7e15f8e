import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { renewHeartbeat } from "../maintenance/processes.ts";

/**
 * Counts a handler's run for a settled payment, before it begins. Returns `false` for an
 * invalidated token: a process that wakes up after a freeze must not run the handler.
 *
 * Rejects where the acknowledgement of its commit is lost. No run begins then, though one may be
 * counted. The count may include a run that never began, and never misses one. A buyer who has
 * paid loses one of two runs by it. Two such losses leave the payment `used_up`, with its receipt.
 *
 * Runs before a settlement need no write of their own: `enqueue`, `release` or the death of their
 * process counts them.
 */
export async function countRun(ledger: LedgerContext, token: string): Promise<boolean> {
  const { numUpdatedRows } = await ledger.write(async (transaction) => {
    // A process that wakes up after a freeze would count as dead while its handler runs.
    await renewHeartbeat(ledger, transaction, { freshMs: ledger.heartbeatLeaseMs / 2 });
    return transaction
      .updateTable("payments")
      .set((set) => ({ runs: set("runs", "+", 1) }))
      .where("token", "=", token)
      .executeTakeFirst();
  }, forProcess);
  return numUpdatedRows > 0n;
}
