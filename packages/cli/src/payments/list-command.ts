import { listPaymentsOperation, type PaymentRecord } from "@coinslot/facilitator";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Io } from "../io.ts";
import { readLimit } from "../read-option.ts";
import { runRead, safeText } from "../reads/run-read.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { addFilterOptions, type FilterOptions, isoTimes } from "./filter-options.ts";

const wires = ["x402v1", "x402v2", "mpp"] as const;

interface ListOptions extends FilterOptions {
  wire?: (typeof wires)[number];
  limit: number;
  cursor?: string;
  json?: true;
}

/** `coinslot payments list`: a page of payments, the newest first. */
export function listCommand(terminal: Terminal, io: Io): Command {
  return addFilterOptions(new Command("list"))
    .description("list payments, the newest first, or find them by a text")
    .argument("[search]", "an address, transaction hash, route, id or nonce")
    .addOption(new Option("--wire <wire>", "only those that came by this wire").choices(wires))
    .option("--limit <number>", "page size, at most 1000", readLimit(1_000), 50)
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
  coinslot payments list 0x90F79bf6EB2c4f870365E785982E1f101E93b906
  coinslot payments list 'GET /weather' --wire mpp
  coinslot payments list --payer 0x90F79bf6EB2c4f870365E785982E1f101E93b906 --json`,
    )
    .action(async (search: string | undefined, options: ListOptions): Promise<void> => {
      const { state, network, token, route, payer, wire, limit, cursor, json, ledger } = options;
      const page = await runRead({ terminal, io, ledger }, listPaymentsOperation, {
        ...{ search, state, network, token, route, payer, wire, limit, cursor },
        ...isoTimes(options),
      });
      const { matched, payments: records, nextCursor } = page;
      if (json) return terminal.out(formatJson(page));
      if (matched !== null && matched.kind !== "none") {
        terminal.err(`Found as a ${matched.kind}.`);
      }
      for (const similar of matched?.routes ?? []) {
        terminal.err(`A route with that in its name: ${safeText(similar)}`);
      }
      if (records.length === 0 && nextCursor === null) {
        return terminal.err("No matching payments.");
      }
      if (records.length > 0) terminal.out(formatRecords(terminal, records));
      if (nextCursor !== null) terminal.err(`There are more: add --cursor ${nextCursor}`);
    });
}

function formatRecords(terminal: Terminal, records: readonly PaymentRecord[]): string {
  const rows = records.map(({ id, createdAt, state, amount, value, payer, network, route }) => [
    createdAt.slice(0, 19).replace("T", " "),
    paintState(terminal, state),
    amount ?? `${value} units`,
    payer,
    network,
    safeText(route),
    id,
  ]);
  return formatTable(terminal, [
    ["time (UTC)", "state", "amount", "payer", "network", "route", "id"],
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
