import { Command } from "commander";
import { printableWhole } from "../pay/printable.ts";
import type { Terminal } from "../terminal.ts";
import { allow, isAllowed } from "./allowed-folders.ts";
import { readFolderSettings } from "./folder-settings.ts";
import { showSettings } from "./require-allowed.ts";

/** `coinslot allow`: agrees to the nodes, tokens and keys of the folder's .env file. */
export function allowCommand(terminal: Terminal): Command {
  return new Command("allow")
    .addHelpText(
      "after",
      `
Before money moves by nodes, tokens or keys of a folder's .env, "coinslot pay" and "coinslot bridge send"
show them and prompt. With --yes, or without a terminal, they need this command first. The answer
is stored for this user, by folder and by a hash of the values: each change prompts again.
Variables of the environment, and a file that COINSLOT_ENV_FILE names, need no allowance.

Example:
  coinslot allow && coinslot pay https://api.example.com/weather --yes`,
    )
    .action(async (): Promise<void> => {
      const settings = readFolderSettings(terminal);
      if (settings === undefined) {
        terminal.err("No .env here names nodes, tokens or keys: there is nothing to allow.");
        return;
      }
      if (await isAllowed(terminal.env, settings)) {
        terminal.err(`${printableWhole(settings.path)} is allowed already.`);
        return;
      }
      showSettings(terminal, settings);
      await allow(terminal.env, settings);
      terminal.err("Allowed, until one of these changes.");
    });
}
