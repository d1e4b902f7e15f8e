import type { BookSum } from "@coinslot/facilitator";
import { Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readLedger } from "../payments/read-ledger.ts";
import type { Terminal } from "../terminal.ts";
import { addRangeOptions, formatDay, type RangeOptions, toRange } from "./book-range.ts";
import { currencyOf } from "./currency.ts";
import { csvFormat } from "./export-csv.ts";
import { beancountFormat, type JournalFormat, ledgerFormat, type Rates } from "./journal.ts";
import { type ExportGroup, exportGroups, readMovements } from "./movement.ts";
import { createProgress } from "./progress.ts";

const formats = ["csv", "beancount", "ledger"] as const;

interface ExportOptions extends RangeOptions {
  format: (typeof formats)[number];
  by?: ExportGroup[];
  rate?: [code: string, dollars: string][];
  ledger?: string;
}

/**
 * `coinslot books export`: the movements of a time, page by page, so that no ledger is too large.
 */
export function exportCommand(terminal: Terminal, io: Io): Command {
  return addRangeOptions(new Command("export"))
    .description("write the movements of money to the standard output")
    .addOption(new Option("--format <format>", "of the output").choices(formats).default("csv"))
    .addOption(
      new Option("--by <group...>", "sums in place of single movements").choices(exportGroups),
    )
    .option("--rate <coin=dollars...>", "price of a coin, such as XPL=0.25", readRate)
    .addOption(ledgerOption())
    .addHelpText(
      "after",
      `
A row or transaction moves its amount from one account to another. Days are those of the posting, in
UTC; a reversal is a row of its own, on its own day. Gas is in the coin of its network, and in dollars
where --rate names its price. It only reads, and may run beside a seller.

Examples:
  coinslot books export --from 2026-11-01 --to 2026-12-01 > november.csv
  coinslot books export --by day route --format beancount > coinslot.beancount
  coinslot books export --by network --format ledger --rate XPL=0.25 > coinslot.ledger`,
    )
    .action(async (options: ExportOptions): Promise<void> => {
      await readLedger({ terminal, io, ledger: options.ledger }, async (_, { books }) => {
        const { isUnfinished } = await books.status();
        if (isUnfinished) {
          terminal.err(
            "Payments from before the books are not all posted yet: export again later.",
          );
        }
        const groups = options.by ?? [];
        const range = toRange(options);
        const format = openFormat(options, io.now());
        const progress = createProgress(io);
        let rows = 0;
        await io.write(format.begin);
        try {
          for await (const page of readMovements(books, range, { groups, codeOf })) {
            rows += page.length;
            const texts = page.map((movement) => {
              const { network, asset } = movement.currency;
              return format.write(movement, currencyOf(network, asset));
            });
            await io.write(texts.join(""));
            const time = page.at(-1)?.time;
            const at = time === undefined ? "" : `, at ${formatDay(time)}`;
            if (!io.isTerminal) progress.show(`${rows} rows${at}`);
          }
        } finally {
          progress.end();
        }
      });
    });
}

/** Tokens of one code and of equal decimals are added over networks. */
function codeOf({ network, asset }: Pick<BookSum, "network" | "asset">): string {
  const { code, decimals } = currencyOf(network, asset);
  return `${code}/${decimals}`;
}

function openFormat({ format, by = [], rate = [], to }: ExportOptions, now: number): JournalFormat {
  const rates: Rates = new Map(rate);
  if (rates.size < rate.length) throw new UsageError("--rate names a coin twice.");
  const lastDay = Math.min(now, (to ?? Number.POSITIVE_INFINITY) - 1);
  switch (format) {
    case "csv":
      return csvFormat(rates, by);
    case "beancount":
      return beancountFormat(rates, lastDay);
    case "ledger":
      return ledgerFormat(rates, lastDay);
  }
}

function readRate(
  text: string,
  before: [string, string][] | undefined,
): [code: string, dollars: string][] {
  const [, code, dollars] =
    /^([A-Z][A-Z0-9-]{0,23})=((?:0|[1-9]\d{0,17})(?:\.\d{1,18})?)$/.exec(text) ?? [];
  if (code === undefined || dollars === undefined) {
    throw new InvalidArgumentError("expected a coin and its price in dollars, such as XPL=0.25");
  }
  return [...(before ?? []), [code, dollars]];
}
