import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { approveCommand } from "./approve-command.ts";
import { cancelCommand } from "./cancel-command.ts";
import { createCommand } from "./create-command.ts";
import { exportCommand } from "./export-command.ts";
import { listCommand } from "./list-command.ts";
import { paidCommand } from "./paid-command.ts";
import { showCommand } from "./show-command.ts";
import { signCommand } from "./sign-command.ts";
import { submitCommand } from "./submit-command.ts";

/** `coinslot refunds`: gives payments back, beside a running seller or without one. */
export function refundsCommand(terminal: Terminal, io: Io): Command {
  return new Command("refunds")
    .addCommand(listCommand(terminal, io))
    .addCommand(showCommand(terminal, io))
    .addCommand(createCommand(terminal, io))
    .addCommand(approveCommand(terminal, io))
    .addCommand(paidCommand(terminal, io))
    .addCommand(cancelCommand(terminal, io))
    .addCommand(exportCommand(terminal, io))
    .addCommand(signCommand(terminal, io))
    .addCommand(submitCommand(terminal, io));
}
