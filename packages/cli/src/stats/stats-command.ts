import { runOperation, statsOperation } from "@coinslot/facilitator";
import { type Address, formatMoney, type Network } from "@coinslot/protocol";
import { Command, Option } from "commander";
import type * as z from "zod";
import { addRangeOptions, formatDay, type RangeOptions } from "../books/book-range.ts";
import { currencyOf } from "../books/currency.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";

const groups = ["day", "route"] as const;
type Group = (typeof groups)[number];
type Totals = z.output<typeof statsOperation.result>;

interface StatsOptions extends RangeOptions {
  by?: Group[];
  ledger?: string;
  json?: true;
}

/**
 * `coinslot stats`: totals of income, payments, refunds, gas, and of requests that bought nothing.
 */
export function statsCommand(terminal: Terminal, io: Io): Command {
  return addRangeOptions(new Command("stats"))
    .addOption(new Option("--by <group...>", "divide the totals further").choices(groups))
    .addOption(ledgerOption())
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
Income and gas are those of the books, by the day of their confirmation, in UTC. Income has the charges of
payment channels, too. Offers and refusals of
the last ten seconds may be missing.

Examples:
  coinslot stats
  coinslot stats --by day --from 2026-11-01 --to 2026-12-01
  coinslot stats --by day route --json`,
    )
    .action(async ({ from, to, by = [], ledger, json }: StatsOptions): Promise<void> => {
      const totals = await runOperation(readOperatorPlace(terminal, io, ledger), statsOperation, {
        from: from === undefined ? undefined : formatDay(from),
        before: to === undefined ? undefined : formatDay(to),
        by,
      });
      if (json) return terminal.out(formatJson(toJson(totals)));
      const tables = [moneyTable(totals, by), gasTable(totals, by), visitsTable(totals, by)].filter(
        (rows) => rows.length > 1,
      );
      if (tables.length === 0)
        return terminal.err("Nothing was sold, offered or refused in this time.");
      terminal.out(tables.map((rows) => formatTable(terminal, rows)).join("\n\n"));
    });
}

function toJson({ money, gas, visits }: Totals): object {
  return {
    money: money.map((each) => ({
      ...each,
      income: String(each.income),
      refunded: String(each.refunded),
    })),
    gas: gas.map((each) => ({ ...each, wei: String(each.wei) })),
    visits,
  };
}

function moneyTable({ money }: Totals, by: readonly Group[]): string[][] {
  const heading = [
    ...by,
    "network",
    "token",
    "payments",
    "charges",
    "income",
    "refunds",
    "given back",
  ];
  const rows = money.map((each) => [
    ...by.map((group) => each[group] ?? "-"),
    each.network,
    currencyOf(each.network, each.asset).code,
    String(each.payments),
    String(each.charges),
    format(each.network, each.asset, each.income),
    String(each.refunds),
    format(each.network, each.asset, each.refunded),
  ]);
  return [heading, ...rows];
}

/** Gas belongs to transactions, which carry payments of many routes. */
function gasTable({ gas }: Totals, by: readonly Group[]): string[][] {
  const byDay = by.includes("day");
  const rows = gas.map(({ day = "-", network, transactions, wei }) => [
    ...(byDay ? [day] : []),
    network,
    String(transactions),
    format(network, undefined, wei),
    currencyOf(network, undefined).code,
  ]);
  return [[...(byDay ? ["day"] : []), "network", "transactions", "gas", ""], ...rows];
}

function visitsTable({ visits }: Totals, by: readonly Group[]): string[][] {
  const sums = new Map<string, { cells: string[]; count: number }>();
  for (const { reason, count, ...each } of visits) {
    const cells = [...by.map((group) => each[group] ?? "-"), reason];
    const key = JSON.stringify(cells);
    sums.set(key, { cells, count: count + (sums.get(key)?.count ?? 0) });
  }
  const rows = [...sums.values()].map(({ cells, count }) => [...cells, String(count)]);
  return [[...by, "offered, or refused for", "requests"], ...rows];
}

function format(network: Network, asset: Address | undefined, amount: bigint): string {
  return formatMoney(amount, currencyOf(network, asset).decimals);
}
