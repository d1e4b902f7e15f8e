import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { claimCommand } from "./claim-command.ts";
import { listCommand } from "./list-command.ts";
import { refundCommand } from "./refund-command.ts";
import { showCommand } from "./show-command.ts";
import { totalsCommand } from "./totals-command.ts";
import { withdrawCommand } from "./withdraw-command.ts";

/** `coinslot channels`: the payment channels of a buyer or of a seller, and the money in them. */
export function channelsCommand(terminal: Terminal, io: Io): Command {
  return new Command("channels")
    .addCommand(listCommand(terminal, io))
    .addCommand(showCommand(terminal, io))
    .addCommand(withdrawCommand(terminal, io))
    .addCommand(totalsCommand(terminal, io))
    .addCommand(claimCommand(terminal, io))
    .addCommand(refundCommand(terminal, io))
    .addHelpText(
      "after",
      `
A buyer's channels are in its file: list, show and withdraw with --file.
A seller's are in its ledger: list and show with --seller, totals, claim and refund.`,
    );
}
