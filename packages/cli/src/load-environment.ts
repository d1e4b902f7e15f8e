import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Environment,
  facilitatorSettings,
  indexerSettings,
  type LoadedEnvironment,
  loadEnvironment as loadSettings,
} from "@coinslot/hosting/environment";
import { commandSettings } from "./command-settings.ts";
import { UsageError } from "./exit-code.ts";

/**
 * Loads the environment of a command, and the settings of any command from its .env file. Ignores
 * other variables of the file.
 *
 * @throws EnvironmentFileError when the file cannot be read
 * @throws UsageError when a database named by the folder's file would get `PGPASSWORD`, or a
 *   password for all hosts in `.pgpass`
 */
export function loadEnvironment(environment: Environment, folder: string): LoadedEnvironment {
  const settings = [...commandSettings, ...facilitatorSettings, ...indexerSettings];
  const loaded = loadSettings({ environment, folder, settings });
  if (!loaded.file?.isOfFolder) return loaded;
  if (environment.PGPASSWORD) keepPassword("PGPASSWORD", loaded.file.values);
  else if (hasPasswordForAll(environment)) {
    keepPassword("The password for all hosts in .pgpass", loaded.file.values);
  }
  return loaded;
}

/** The client of PostgreSQL sends it to any server that asks for it, where the URL has none. */
function keepPassword(password: string, values: Readonly<Record<string, string>>): void {
  const names = ["COINSLOT_LEDGER", "INDEXER_DATABASE"];
  const name = names.find((each) => {
    const url = values[each]?.trim() ?? "";
    if (values[`${each}_FILE`]) return true;
    if (!/^postgres(?:ql)?:/i.test(url)) return false;
    return !URL.canParse(url) || new URL(url).password === "";
  });
  if (name === undefined) return;
  throw new UsageError(
    `${password} is not sent to the database that a folder's .env file names: put the password into ${name}, or set ${name} in the environment.`,
  );
}

/** The client of PostgreSQL reads this file where it has no other password. */
function hasPasswordForAll({ PGPASSFILE, HOME }: Environment): boolean {
  try {
    const text = readFileSync(PGPASSFILE || join(HOME || ".", ".pgpass"), "utf8");
    return /^\*:/m.test(text);
  } catch {
    return false;
  }
}
