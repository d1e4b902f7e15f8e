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
    write: (movement, currency) =>
      formatCsvRow(columns.map((column) => cells[column](movement, currency, rates))),
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
  "count",
] as const;

type Column = (typeof entryColumns)[number] | "day";

function sumColumns(groups: readonly ExportGroup[]): Column[] {
  return [...groups.filter((group) => group !== "token"), ...common, "count"];
}

type Cell = (movement: Movement, currency: Currency, rates: Rates) => string | number | null;

const cells: Record<Column, Cell> = {
  time: ({ time }) => (time === undefined ? null : new Date(time).toISOString()),
  day: ({ time }) => (time === undefined ? null : formatDay(time)),
  network: ({ network }) => network ?? null,
  route: ({ route }) => route ?? null,
  movement: ({ kind, isReversal }) => (isReversal ? `${kind} reversal` : kind),
  debit: ({ debit }) => debit,
  credit: ({ credit }) => credit,
  amount: ({ amount }, { decimals }) => formatMoney(amount, decimals),
  currency: (_, { code }) => code,
  usd: ({ amount }, currency, rates) => dollarsOf(amount, currency, rates) ?? null,
  count: ({ count }) => count,
  token: ({ entry }) => entry?.asset ?? null,
  value: ({ amount }) => amount.toString(),
  source: ({ entry }) => entry?.sourceId ?? null,
  transaction: ({ entry }) => entry?.transaction ?? null,
  payer: ({ entry }) => entry?.payer ?? null,
  payTo: ({ entry }) => entry?.payTo ?? null,
  state: ({ entry }) => (entry?.isFinal === undefined ? null : entry.isFinal ? "final" : "pending"),
};

/** Exact: an amount times a decimal rate. */
function dollarsOf(amount: bigint, { code, decimals }: Currency, rates: Rates): string | undefined {
  const rate = rates.get(code);
  if (rate === undefined) return undefined;
  const [whole = "0", fraction = ""] = rate.split(".");
  return formatMoney(amount * BigInt(whole + fraction), decimals + fraction.length);
}
