import { channelTotalsOperation } from "@coinslot/facilitator";
import type { Command } from "commander";
import type { Io } from "../io.ts";
import { type ReadOptions, readCommand, runRead, timeText } from "../reads/run-read.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";
import { text } from "./seller-channels.ts";

/** `coinslot channels totals`: sums of a seller's channels. */
export function totalsCommand(terminal: Terminal, io: Io): Command {
  return readCommand("totals")
    .description("of a seller: sums of all its channels, and the next deadline")
    .addHelpText(
      "after",
      `
"at risk" is unclaimed money that payers withdraw: it has to be claimed before the deadline.

Example:
  coinslot channels totals`,
    )
    .action(async ({ ledger, json }: ReadOptions): Promise<void> => {
      const { totals } = await runRead({ terminal, io, ledger }, channelTotalsOperation, {});
      if (json) return terminal.out(formatJson({ totals }));
      if (totals.length === 0) return terminal.err("The ledger has no channels.");
      const rows = totals.map((each) => [
        each.network,
        `${each.channels}`,
        ...[each.charged, each.unclaimed, each.atRisk, each.lost, each.locked].map(text),
        timeText(each.unclaimedSince),
        timeText(each.nextDeadline),
        each.refused === null ? "-" : `${each.refused}`,
        each.watched === null ? "-" : `${each.watched.lagSeconds} s`,
      ]);
      const heading = [
        ...["network", "channels", "charged", "unclaimed", "at risk", "lost", "locked"],
        ...["oldest (UTC)", "deadline (UTC)", "refused", "lag"],
      ];
      terminal.out(formatTable(terminal, [heading, ...rows]));
    });
}
