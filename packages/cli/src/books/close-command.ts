import { closeBooks, openLedgerReader, sealBooks } from "@coinslot/facilitator";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { isLedgerAbsent, ledgerOption, readLedgerUrl } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import type { Terminal } from "../terminal.ts";
import { formatDay, readDay } from "./book-range.ts";
import { createProgress } from "./progress.ts";

const dayMs = 86_400_000;

interface CloseOptions {
  until: number;
  ledger?: string;
}

/** `coinslot books close`: nothing is posted up to a day any more. */
export function closeCommand(terminal: Terminal, io: Io): Command {
  return new Command("close")
    .description("close the books up to the end of a day, in UTC")
    .requiredOption("--until <day>", "the last day of the period, such as 2026-10-31", readDay)
    .addOption(ledgerOption())
    .addHelpText(
      "after",
      `
Refused while something posted in the period is not final, by its names. A reorganisation after that is
posted on its own day, in the open period. Closing cannot be undone; a repetition changes nothing. The
period's digest is kept, and coinslot books check compares it.

Example:
  coinslot books close --until 2026-10-31`,
    )
    .action(async ({ until, ledger }: CloseOptions): Promise<void> => {
      const url = readOperatorPlace(terminal, io, ledger);
      const end = until + dayMs;
      const { isNew } = await closeBooks({ url, until: end });
      const words = isNew ? "The books are closed" : "The books were closed before";
      terminal.out(`${words} up to the end of ${formatDay(until)}.`);
      const digest = await readDigest({ terminal, io, ledger, end });
      if (digest === undefined) return;
      await sealBooks({ url, until: end, digest });
      terminal.out(`Digest: ${digest}`);
    });
}

/** `undefined` where the ledger is elsewhere: the seller's operator is asked over HTTP. */
async function readDigest(options: {
  terminal: Terminal;
  io: Io;
  ledger: string | undefined;
  end: number;
}): Promise<string | undefined> {
  const { terminal, io, ledger, end } = options;
  const url = readLedgerUrl(terminal.env, ledger);
  if (isLedgerAbsent(url, io.folder)) {
    terminal.err("The period has no digest: run this once more beside the ledger.");
    return undefined;
  }
  const progress = createProgress(io);
  const { books, close } = await openLedgerReader({ url });
  try {
    progress.show("computing the digest");
    const { periods } = await books.status();
    const period = periods.find(({ closedTo }) => closedTo === end);
    // Another ledger than the one that the seller has closed.
    if (period === undefined) throw new UsageError("COINSLOT_LEDGER names another ledger.");
    const from = periods.find(({ closedTo }) => closedTo < end)?.closedTo ?? 0;
    return period.digest ?? (await books.digest({ from, before: end }));
  } finally {
    progress.end();
    await close();
  }
}
