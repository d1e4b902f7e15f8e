import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { exportCommand } from "./export-command.ts";
import { listCommand } from "./list-command.ts";
import { receiptCommand } from "./receipt-command.ts";
import { showCommand } from "./show-command.ts";
import { statsCommand } from "./stats-command.ts";
import { timelineCommand } from "./timeline-command.ts";

/** `coinslot payments`: reads the ledger, also while a seller works with it. */
export function paymentsCommand(terminal: Terminal, io: Io): Command {
  return new Command("payments")
    .addCommand(listCommand(terminal, io))
    .addCommand(showCommand(terminal, io))
    .addCommand(timelineCommand(terminal, io))
    .addCommand(statsCommand(terminal, io))
    .addCommand(exportCommand(terminal, io))
    .addCommand(receiptCommand(terminal, io));
}
