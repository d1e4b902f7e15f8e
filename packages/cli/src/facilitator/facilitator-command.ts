import { facilitatorSettings } from "@coinslot/hosting/environment";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Terminal } from "../terminal.ts";

/** `coinslot facilitator`: verifies and settles for other sellers, until Ctrl-C. */
export function facilitatorCommand(terminal: Terminal): Command {
  return new Command("facilitator")
    .option("--config <file>", "a YAML or JSON file with settings; default: FACILITATOR_CONFIG")
    .option("--devnet", "on a local chain of its own, to try it")
    .addHelpText("after", `\nSettings, from the environment:\n${listSettings()}`)
    .addCommand(newKeyCommand(terminal))
    .action(async ({ config, devnet }: { config?: string; devnet?: true }): Promise<void> => {
      // Lazy import: a web framework and a database are much for a help text.
      if (devnet) {
        const { tryOnDevnet } = await import("./try-on-devnet.ts");
        return tryOnDevnet(terminal);
      }
      const { runFacilitatorService } = await import("@coinslot/hosting");
      await runFacilitatorService({ env: terminal.env, file: config, signal: terminal.signal });
    });
}

/** `coinslot facilitator new-key`: a key for a caller, and its entry for the facilitator. */
function newKeyCommand(terminal: Terminal): Command {
  return new Command("new-key")
    .description("make a key for a caller; the facilitator is given its hash alone")
    .argument("<name>", "whose key it is, such as the name of a shop")
    .addHelpText(
      "after",
      `
The standard output has the line for the facilitator, the standard error the key for the caller.

Example:
  coinslot facilitator new-key shop >> secrets/facilitator-keys`,
    )
    .action(async (name: string): Promise<void> => {
      const { createCallerKey, isCallerName } = await import("@coinslot/hosting");
      if (!isCallerName(name)) {
        throw new UsageError("A name has up to 64 letters, digits, dots and dashes.");
      }
      const { key, entry } = createCallerKey(name);
      terminal.err(`The key of ${name}, shown this one time:\n${key}`);
      terminal.err("For FACILITATOR_KEYS, or a line of the file in FACILITATOR_KEYS_FILE:");
      terminal.out(entry);
    });
}

function listSettings(): string {
  return facilitatorSettings
    .map(({ name, explanation }) => `  ${name}\n      ${explanation}`)
    .join("\n");
}
