import { readFileSync, statSync } from "node:fs";
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
 * @throws UsageError when a database named by the folder's file, or by a service's file that it
 *   names, would get `PGPASSWORD`, or a password for all hosts in `.pgpass`
 */
export async function loadEnvironment(
  environment: Environment,
  folder: string,
): Promise<LoadedEnvironment> {
  const settings = [...commandSettings, ...facilitatorSettings, ...indexerSettings];
  const loaded = loadSettings({ environment, folder, settings });
  if (!loaded.file?.isOfFolder) return loaded;
  if (environment.PGPASSWORD) await keepPassword("PGPASSWORD", loaded);
  else if (hasPasswordForAll(environment)) {
    await keepPassword("The password for all hosts in .pgpass", loaded);
  }
  return loaded;
}

/** Databases, and the setting of each in the file of a service. */
const databases = [
  { name: "COINSLOT_LEDGER", config: "FACILITATOR_CONFIG", setting: "ledger" },
  { name: "INDEXER_DATABASE", config: "INDEXER_CONFIG", setting: "database" },
] as const;

/** The client of PostgreSQL sends it to any server that asks for it, where the URL has none. */
async function keepPassword(password: string, { env, file }: LoadedEnvironment): Promise<void> {
  const values = file?.values ?? {};
  for (const { name, config, setting } of databases) {
    const isSet = Boolean(env[name]?.trim() || env[`${name}_FILE`]?.trim());
    const path = isSet ? undefined : values[config]?.trim();
    if (path && isTooLarge(path)) {
      throw new UsageError(
        `.env: the file of ${config} is larger than 64 KiB, so it is not searched for a database that would get ${password}: name it by ${config} in the environment, or set ${name} there.`,
      );
    }
    const url = path ? await readFromFile(path, setting) : values[name];
    if (!values[`${name}_FILE`] && !lacksPassword(url)) continue;
    throw new UsageError(
      `${password} is not sent to the database that a folder's .env file names: put the password into its URL, or set ${name} in the environment.`,
    );
  }
}

/** The time of the parser grows by the square of a file that a stranger may have made. */
const maxBytes = 65_536;

function isTooLarge(path: string): boolean {
  try {
    return statSync(path).size > maxBytes;
  } catch {
    // The service reports it.
    return false;
  }
}

/** A setting in the file of a service. The file's problems are reported by the service. */
async function readFromFile(path: string, setting: string): Promise<unknown> {
  const { readSettingsFile } = await import("@coinslot/hosting");
  return readSettingsFile(path, { keys: setting, tell: () => undefined })[setting];
}

function lacksPassword(url: unknown): boolean {
  if (typeof url !== "string" || !/^\s*postgres(?:ql)?:/i.test(url)) return false;
  return !URL.canParse(url) || new URL(url).password === "";
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
