import type { PaymentStats, StatsGroup } from "@coinslot/facilitator";
import { findKnownToken, formatMoney } from "@coinslot/protocol";
import { Command, Option } from "commander";
import type { Io } from "../io.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";
import { addTimeOptions, type FilterOptions, toFilter } from "./filter-options.ts";
import { readLedger } from "./read-ledger.ts";

interface StatsCommandOptions extends Pick<FilterOptions, "from" | "to" | "ledger"> {
  by?: StatsGroup[];
  json?: true;
}

/** `coinslot payments stats`: numbers and sums of payments. */
export function statsCommand(terminal: Terminal, io: Io): Command {
  return addTimeOptions(new Command("stats"))
    .description("count payments, and sum them, by network, token and state")
    .addOption(
      new Option("--by <group...>", "divide them further").choices([
        "day",
        "route",
      ] satisfies StatsGroup[]),
    )
    .option("--json", "print JSON, values in the smallest unit")
    .addHelpText(
      "after",
      `
Examples:
  coinslot payments stats
  coinslot payments stats --by day route --from 2026-11-01 --to 2026-12-01`,
    )
    .action(async (options: StatsCommandOptions): Promise<void> => {
      const { ledger, by = [], json } = options;
      const { createdFrom, createdBefore } = toFilter(options);
      const stats = await readLedger({ terminal, io, ledger }, (_, reader) =>
        reader.stats({ createdFrom, createdBefore, by }),
      );
      if (json) {
        const rows = stats.map((each) => ({ ...each, amount: each.amount.toString() }));
        return terminal.out(formatJson({ stats: rows }));
      }
      if (stats.length === 0) return terminal.err("No matching payments.");
      const heading = [...by, "network", "token", "state", "payments", "amount"];
      terminal.out(formatTable(terminal, [heading, ...stats.map((each) => toRow(each, by))]));
    });
}

function toRow(stats: PaymentStats, by: readonly StatsGroup[]): string[] {
  const { network, asset, state, count, amount } = stats;
  const token = findKnownToken(network, asset);
  return [
    ...by.map((group) => stats[group] ?? "-"),
    network,
    token?.symbol ?? asset,
    state,
    String(count),
    token ? formatMoney(amount, token.decimals) : `${amount} units`,
  ];
}
