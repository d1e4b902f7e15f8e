import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { checkCommand } from "./check-command.ts";
import { closeCommand } from "./close-command.ts";
import { exportCommand } from "./export-command.ts";
import { showCommand } from "./show-command.ts";

/** `coinslot books`: the movements of money in double entry. */
export function booksCommand(terminal: Terminal, io: Io): Command {
  return new Command("books")
    .addCommand(checkCommand(terminal, io))
    .addCommand(exportCommand(terminal, io))
    .addCommand(closeCommand(terminal, io))
    .addCommand(showCommand(terminal, io));
}
