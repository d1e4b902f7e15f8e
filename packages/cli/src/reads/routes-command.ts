import { listRoutesOperation } from "@coinslot/facilitator";
import type { Command } from "commander";
import type { Io } from "../io.ts";
import { addTimeRange, isoTimes } from "../payments/filter-options.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";
import {
  moneyText,
  type ReadOptions,
  readCommand,
  runRead,
  safeText,
  timeText,
} from "./run-read.ts";

/** `coinslot routes`: sales and income of each route. */
export function routesCommand(terminal: Terminal, io: Io): Command {
  return addTimeRange(readCommand("routes"))
    .addHelpText(
      "after",
      `
Examples:
  coinslot routes
  coinslot routes --from 2026-11-01 --to 2026-12-01`,
    )
    .action(async (options: ReadOptions & { from?: number; to?: number }): Promise<void> => {
      const { ledger, json } = options;
      const found = await runRead({ terminal, io, ledger }, listRoutesOperation, isoTimes(options));
      if (json) return terminal.out(formatJson(found));
      if (found.routes.length === 0) return terminal.err("Nothing was sold or offered yet.");
      const rows = found.routes.map((route) => [
        safeText(route.route),
        String(route.sales),
        moneyText(route.income),
        String(route.charges),
        moneyText(route.charged),
        String(route.offers),
        String(route.refusals),
        String(route.failed + route.expired),
        route.lastSaleAt === null ? (route.lastSaleDay ?? "-") : timeText(route.lastSaleAt),
      ]);
      const heading = [
        "route",
        "sales",
        "income",
        "charges",
        "charged",
        "offers",
        "refused",
        "failed",
        "last sale (UTC)",
      ];
      terminal.out(formatTable(terminal, [heading, ...rows]));
    });
}
