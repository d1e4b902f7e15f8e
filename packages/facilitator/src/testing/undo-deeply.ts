import type { LedgerContext } from "../ledger/ledger-context.ts";
import {
  findInFinalBlocks,
  type LeftRows,
  undoFinalPayments,
  undoFinalRefunds,
  undoFinalTransactions,
} from "../ledger/transactions/undo-final-blocks.ts";

/**
 * Takes back everything final in some blocks, by several processes at once. `isCut`: they die after
 * the first step.
 */
export async function undoDeeply(
  ledgers: readonly [LedgerContext, ...LedgerContext[]],
  { isCut, ...left }: Omit<LeftRows, "ids"> & { isCut: boolean },
): Promise<void> {
  const walk = { network: left.network, after: "", limit: 1_000 };
  for (const table of ["payments", "transactions"] as const) {
    const { rows } = await findInFinalBlocks(ledgers[0], { table, ...walk });
    const undo = table === "payments" ? undoFinalPayments : undoFinalTransactions;
    const ids = rows.map(({ id }) => id);
    await Promise.all(ledgers.map((each) => undo(each, { ...left, ids })));
    if (isCut) return;
  }
  await Promise.all(ledgers.map((each) => undoFinalRefunds(each, left)));
}
