import { batchPerLedger, maxAtOnce } from "../batch-per-ledger.ts";
import { forProcess, type LedgerContext } from "../ledger-context.ts";

/**
 * Records that the answer of a reservation has gone out, and gives its token up. No effect for a
 * reservation that was lost meanwhile. A write that fails is queued for a retry.
 */
export function deliverPayment(ledger: LedgerContext, token: string): Promise<void> {
  return ledger.pendingEnds.write(token, () => deliverOne(ledger, token));
}

const deliverOne = batchPerLedger(deliverPayments, { maxItems: maxAtOnce });

async function deliverPayments(
  ledger: LedgerContext,
  tokens: readonly string[],
): Promise<undefined[]> {
  await ledger.write(async (transaction) => {
    await transaction
      .updateTable("payments")
      .set({ delivered_at: ledger.now(), token: null, owner: null })
      .where("token", "in", ledger.dialect.among(tokens))
      .where("delivered_at", "is", null)
      .execute();
  }, forProcess);
  return tokens.map(() => undefined);
}
