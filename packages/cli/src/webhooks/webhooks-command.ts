import { Command } from "commander";
import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";
import { deadCommand } from "./dead-command.ts";
import { listCommand } from "./list-command.ts";
import { replayCommand } from "./replay-command.ts";
import { rotateSecretCommand } from "./rotate-secret-command.ts";
import { testCommand } from "./test-command.ts";

/** `coinslot webhooks`: the receivers of a ledger's events, also while a seller works with it. */
export function webhooksCommand(terminal: Terminal, io: Io): Command {
  return new Command("webhooks")
    .addCommand(listCommand(terminal, io))
    .addCommand(deadCommand(terminal, io))
    .addCommand(replayCommand(terminal, io))
    .addCommand(testCommand(terminal, io))
    .addCommand(rotateSecretCommand(terminal));
}
