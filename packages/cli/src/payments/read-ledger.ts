import { type LedgerReader, openLedgerReader } from "@coinslot/facilitator";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { isLedgerAbsent, readLedgerUrl } from "../ledger-url.ts";
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
  const url = readLedgerUrl(terminal.env, ledger);
  if (isLedgerAbsent(url, io.folder)) {
    throw new UsageError(
      "The ledger does not exist yet: a seller creates it at its start. Does COINSLOT_LEDGER, or --ledger, name your seller's?",
    );
  }
  const reader = await openLedgerReader({ url });
  try {
    return await look(reader.payments, reader);
  } finally {
    await reader.close();
  }
}
