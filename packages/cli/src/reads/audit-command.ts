import { listAuditOperation } from "@coinslot/facilitator";
import type { Command } from "commander";
import type { Io } from "../io.ts";
import { addTimeRange, isoTimes } from "../payments/filter-options.ts";
import { readLimit } from "../read-option.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { type ReadOptions, readCommand, runRead, safeText, timeText } from "./run-read.ts";

interface AuditOptions extends ReadOptions {
  from?: number;
  to?: number;
  operation?: string;
  account?: string;
  subject?: string;
  cursor?: string;
  limit: number;
}

/** `coinslot audit`: the acting commands of operators, the newest first. */
export function auditCommand(terminal: Terminal, io: Io): Command {
  return addTimeRange(readCommand("audit"))
    .option("--operation <name>", "only this one, such as refunds.create")
    .option("--account <name>", "only those of this account")
    .option("--subject <id>", "only those on this payment")
    .option("--limit <number>", "page size, at most 1000", readLimit(1_000), 50)
    .option("--cursor <cursor>", "cursor of the next page, as printed by the previous one")
    .addHelpText(
      "after",
      `
Each command that acts on the ledger has an entry, which is never changed: by whom, by which way,
with which argument, and how it ended. "begun" is one whose end was not recorded.

Examples:
  coinslot audit
  coinslot audit --operation refunds.create --from 2026-11-01 --json`,
    )
    .action(async (options: AuditOptions): Promise<void> => {
      const { ledger, json, operation, account, subject, cursor, limit } = options;
      const page = await runRead({ terminal, io, ledger }, listAuditOperation, {
        ...isoTimes(options),
        ...{ operation, account, subject, cursor, limit },
      });
      if (json) return terminal.out(formatJson(page));
      if (page.entries.length === 0) return terminal.err("No matching entries.");
      const rows = page.entries.map((entry) => [
        timeText(entry.at),
        safeText(entry.account ?? entry.actor),
        safeText(entry.via),
        safeText(entry.operation),
        safeText(entry.subject),
        entry.outcome === "done" ? entry.outcome : paint(terminal, "yellow", entry.outcome),
        safeText(entry.code),
      ]);
      const heading = ["time (UTC)", "by", "via", "operation", "on", "outcome", "code"];
      terminal.out(formatTable(terminal, [heading, ...rows]));
      if (page.nextCursor !== null) {
        terminal.err(`There are more: add --cursor ${page.nextCursor}`);
      }
    });
}
