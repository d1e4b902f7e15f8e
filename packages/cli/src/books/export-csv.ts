import { formatMoney } from "@coinslot/protocol";
import { formatCsvRow } from "../payments/csv.ts";
import { formatDay } from "./book-range.ts";
import type { Currency } from "./currency.ts";
import type { JournalFormat, Rates } from "./journal.ts";
import type { ExportGroup, Movement } from "./movement.ts";

/** CSV, safe for spreadsheets: each row moves its amount from the credit to the debit account. */
export function csvFormat(rates: Rates, groups: readonly ExportGroup[]): JournalFormat {
  const columns = groups.length === 0 ? entryColumns : sumColumns(groups);
  return {
    begin: formatCsvRow(columns),
    write(movement, currency) {
      const cells = cellsOf(movement, currency, rates);
      return formatCsvRow(columns.map((column) => cells[column] ?? null));
    },
  };
}

const common = ["movement", "debit", "credit", "amount", "currency", "usd"] as const;

const entryColumns = [
  "time",
  "network",
  "token",
  "route",
  ...common,
  "value",
  "source",
  "transaction",
  "payer",
  "payTo",
  "state",
] as const;

type Column = (typeof entryColumns)[number] | "day" | "count";

function sumColumns(groups: readonly ExportGroup[]): Column[] {
  return [...groups.filter((group) => group !== "token"), ...common, "count"];
}

function cellsOf(
  movement: Movement,
  currency: Currency,
  rates: Rates,
): Partial<Record<Column, string | number | null>> {
  const { time, network, route, kind, isReversal, debit, credit, amount, count, entry } = movement;
  const iso = time === undefined ? null : new Date(time).toISOString();
  return {
    time: iso,
    day: time === undefined ? null : formatDay(time),
    network: network ?? null,
    route: route ?? null,
    movement: isReversal ? `${kind} reversal` : kind,
    debit,
    credit,
    amount: formatMoney(amount, currency.decimals),
    currency: currency.code,
    usd: dollarsOf(amount, currency, rates) ?? null,
    count,
    token: entry?.asset ?? null,
    value: amount.toString(),
    source: entry?.sourceId ?? null,
    transaction: entry?.transaction ?? null,
    payer: entry?.payer ?? null,
    payTo: entry?.payTo ?? null,
    state: entry?.isFinal === undefined ? null : entry.isFinal ? "final" : "pending",
  };
}

/** Exact: an amount times a decimal rate. */
function dollarsOf(amount: bigint, { code, decimals }: Currency, rates: Rates): string | undefined {
  const rate = rates.get(code);
  if (rate === undefined) return undefined;
  const [whole = "0", fraction = ""] = rate.split(".");
  return formatMoney(amount * BigInt(whole + fraction), decimals + fraction.length);
}
