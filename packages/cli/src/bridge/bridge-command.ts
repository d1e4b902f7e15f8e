import { Command } from "commander";
import type { Terminal } from "../terminal.ts";
import { chainsCommand } from "./chains-command.ts";
import { quoteCommand } from "./quote-command.ts";
import { sendCommand } from "./send-command.ts";
import { trackCommand } from "./track-command.ts";

/** `coinslot bridge`: brings USDT0 to the chain where it is spent. */
export function bridgeCommand(terminal: Terminal): Command {
  return new Command("bridge")
    .addCommand(chainsCommand(terminal))
    .addCommand(quoteCommand(terminal))
    .addCommand(sendCommand(terminal))
    .addCommand(trackCommand(terminal));
}
