import { Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { addFilterOptions, type FilterOptions, toFilter } from "./filter-options.ts";
import { type PaymentRecord, toRecord } from "./payment-record.ts";
import { readLedger } from "./read-ledger.ts";

interface ListOptions extends FilterOptions {
  limit: number;
  cursor?: string;
  json?: true;
}

/** `coinslot payments list`: a page of payments, the newest first. */
export function listCommand(terminal: Terminal, io: Io): Command {
  return addFilterOptions(new Command("list"))
    .description("list payments, the newest first")
    .option("--limit <number>", "page size, at most 1000", readLimit, 50)
    .option(
      "--cursor <cursor>",
      "cursor of the next page, as printed by the previous one",
      readCursor,
    )
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
Examples:
  coinslot payments list
  coinslot payments list --state confirmed --from 24h
  coinslot payments list --payer 0x90F79bf6EB2c4f870365E785982E1f101E93b906 --json`,
    )
    .action(async (options: ListOptions): Promise<void> => {
      const { limit, cursor, json, ledger } = options;
      const page = await readLedger({ terminal, io, ledger }, (payments) =>
        payments.list({ ...toFilter(options), limit, cursor }),
      );
      const { nextCursor = null } = page;
      const records = page.payments.map(toRecord);
      if (json) return terminal.out(formatJson({ payments: records, nextCursor }));
      if (records.length === 0) return terminal.err("No matching payments.");
      terminal.out(formatRecords(terminal, records));
      if (nextCursor !== null) terminal.err(`There are more: add --cursor ${nextCursor}`);
    });
}

function formatRecords(terminal: Terminal, records: readonly PaymentRecord[]): string {
  const rows = records.map(({ id, createdAt, state, amount, value, payer, network }) => [
    createdAt.slice(0, 19).replace("T", " "),
    paintState(terminal, state),
    amount ?? `${value} units`,
    payer,
    network,
    id,
  ]);
  return formatTable(terminal, [
    ["time (UTC)", "state", "amount", "payer", "network", "id"],
    ...rows,
  ]);
}

function paintState(terminal: Terminal, state: string): string {
  if (state === "confirmed") return paint(terminal, "green", state);
  return state === "failed" || state === "expired" ? paint(terminal, "red", state) : state;
}

/** Checks the id of a payment. */
function readCursor(text: string): string {
  if (/^[0-9a-f]{44}$/.test(text)) return text;
  throw new InvalidArgumentError("expected the cursor that the page before ended with");
}

function readLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1000) return limit;
  throw new InvalidArgumentError("expected a number from 1 to 1000");
}
