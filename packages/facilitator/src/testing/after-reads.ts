import type { LedgerContext } from "../ledger/ledger-context.ts";

/**
 * The ledger, with work of another process between each read outside transactions and its result.
 */
export function afterReads(
  ledger: LedgerContext,
  work: (rows: readonly object[]) => Promise<void>,
): LedgerContext {
  const db = ledger.db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      await work(result.rows);
      return result;
    },
  });
  return { ...ledger, db };
}
