import type { LedgerContext } from "../ledger/ledger-context.ts";

/** A database transaction that changes payments and never commits. */
export async function crashIn(ledger: LedgerContext, ids: readonly string[]): Promise<void> {
  const crash = new Error("crash");
  const { among } = ledger.dialect;
  await ledger
    .write(async (transaction) => {
      for (const state of ["confirmed", "queued"] as const) {
        await transaction
          .updateTable("payments")
          .set({ state })
          .where("id", "in", among(ids))
          .execute();
      }
      throw crash;
    })
    .catch((error: unknown) => {
      if (error !== crash) throw error;
    });
}
