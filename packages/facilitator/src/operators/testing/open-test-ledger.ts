import { onTestFinished } from "vitest";
import { createLedger } from "../../ledger/create-ledger.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { openLedger } from "../../ledger/open-ledger.ts";

/** Opens a ledger as a seller does, until the test ends. */
export async function openTestLedger(url: string): Promise<LedgerContext> {
  const processId = "seller";
  const { database, close } = await openLedger({ url, processId });
  onTestFinished(close);
  return createLedger({
    database,
    processId,
    now: Date.now,
    heartbeatLeaseMs: 10_000,
    keepAnswersMs: 0,
    releaseLimit: { count: 20, windowMs: 60_000 },
  });
}
