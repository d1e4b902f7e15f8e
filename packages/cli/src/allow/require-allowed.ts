import { UsageError } from "../exit-code.ts";
import { printableWhole } from "../pay/printable.ts";
import { formatFacts, paint, type Terminal } from "../terminal.ts";
import { allow, isAllowed } from "./allowed-folders.ts";
import { type FolderSettings, readFolderSettings } from "./folder-settings.ts";

/**
 * Requires this user's consent to the nodes, tokens and keys of the folder's .env file, before
 * money moves by them. A folder may be a stranger's checkout: its nodes could lie about balances
 * and outcomes, and its tokens be any. As with direnv, each change prompts again.
 *
 * Returns the terminal with the agreed environment, in which no file is read a second time.
 *
 * @param options.mayAsk whether a person may be asked now
 * @throws UsageError when the answer is no, or no terminal can ask
 */
export async function requireAllowed(
  terminal: Terminal,
  options: { mayAsk: boolean },
): Promise<Terminal> {
  const settings = readFolderSettings(terminal);
  if (settings === undefined) return terminal;
  const agreed = { ...terminal, env: settings.env };
  if (await isAllowed(terminal.env, settings)) return agreed;
  showSettings(terminal, settings);
  if (!options.mayAsk || terminal.confirm === undefined) {
    throw new UsageError(
      'Check the values of this .env, then run "coinslot allow" here. Or set it in the environment, or name the file by COINSLOT_ENV_FILE.',
    );
  }
  if (!(await terminal.confirm("Use these?"))) throw new UsageError("Nothing was sent.");
  await allow(terminal.env, settings).catch(() => {
    terminal.err(`${paint(terminal, "yellow", "warning:")} this could not be remembered.`);
  });
  return agreed;
}

/** Shows the settings of a folder's file. */
export function showSettings(terminal: Terminal, { path, shown }: FolderSettings): void {
  terminal.err(`${printableWhole(path)} is new here, or has changed. It names:`);
  terminal.err(formatFacts(terminal, shown));
}
