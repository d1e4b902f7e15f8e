import { type LedgerReader, openLedgerReader } from "@coinslot/facilitator";
import type { Io } from "../io.ts";
import { requireLedgerUrl } from "../ledger-url.ts";
import type { Terminal } from "../terminal.ts";

/**
 * Opens the ledger for reading, and closes it when `look` is done.
 *
 * @throws UsageError where there is no ledger; DatabaseError when it cannot be read
 */
export async function readLedger<Result>(
  options: { terminal: Terminal; io: Io; ledger: string | undefined },
  look: (payments: LedgerReader["payments"], ledger: LedgerReader) => Promise<Result>,
): Promise<Result> {
  const { terminal, io, ledger } = options;
  const reader = await openLedgerReader({ url: requireLedgerUrl(terminal, io, ledger) });
  try {
    return await look(reader.payments, reader);
  } finally {
    await reader.close();
  }
}
