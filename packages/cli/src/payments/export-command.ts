import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { formatCsvRow } from "./csv.ts";
import { addFilterOptions, type FilterOptions, toFilter } from "./filter-options.ts";
import { recordColumns } from "./payment-record.ts";
import { readLedger } from "./read-ledger.ts";

const pageSize = 1_000;

/** The columns, in order. Later ones are at the end: programs may count them. */
const exportColumns = [...recordColumns, "route", "resource", "payTo", "wire"] as const;

/**
 * `coinslot payments export`: every payment as CSV, page by page, so that no ledger is too large.
 */
export function exportCommand(terminal: Terminal, io: Io): Command {
  return addFilterOptions(new Command("export"))
    .description("write all payments as CSV to the standard output, the newest first")
    .addHelpText(
      "after",
      `
Examples:
  coinslot payments export > payments.csv
  coinslot payments export --state confirmed --from 2026-11-01 --to 2026-12-01 > november.csv`,
    )
    .action(async (options: FilterOptions): Promise<void> => {
      const { ledger } = options;
      await readLedger({ terminal, io, ledger }, async (payments) => {
        await io.write(formatCsvRow(exportColumns));
        let cursor: string | undefined;
        do {
          const page = await payments.records({ ...toFilter(options), limit: pageSize, cursor });
          const rows = page.records.map((record) =>
            formatCsvRow(exportColumns.map((name) => record[name])),
          );
          await io.write(rows.join(""));
          cursor = page.nextCursor;
        } while (cursor !== undefined);
      });
    });
}
