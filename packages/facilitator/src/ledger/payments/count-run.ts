import { forProcess, type LedgerContext } from "../ledger-context.ts";

/**
 * Counts a handler's run for a settled payment, before it begins. Returns `false` where the token
 * was taken away, so that a frozen process which wakes up runs nothing.
 *
 * Runs before a settlement need no write of their own: `enqueue`, `release` or the death of their
 * process counts them.
 */
export async function countRun(ledger: LedgerContext, token: string): Promise<boolean> {
  const { numUpdatedRows } = await ledger.write(
    (transaction) =>
      transaction
        .updateTable("payments")
        .set((set) => ({ runs: set("runs", "+", 1) }))
        .where("token", "=", token)
        .executeTakeFirst(),
    forProcess,
  );
  return numUpdatedRows > 0n;
}
