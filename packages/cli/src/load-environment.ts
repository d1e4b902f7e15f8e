import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { UsageError } from "./exit-code.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment together with an .env file: the one that `COINSLOT_ENV_FILE` names, else `.env` in
 * the folder, if there is one. What is set in the environment itself wins, in whatever form: with
 * `WALLET_PRIVATE_KEY_FILE` in the environment, the file's `WALLET_SEED_PHRASE` is passed over.
 *
 * @throws UsageError when the file cannot be read; nothing of it is repeated.
 */
export function loadEnvironment(environment: Environment, folder: string): Environment {
  const fromFile = readEnvFile(environment.COINSLOT_ENV_FILE, folder);
  const isSet = (name: string) => environment[name] !== undefined && environment[name] !== "";
  const subjects = new Set(Object.keys(environment).filter(isSet).map(subjectOf));
  const added = Object.entries(fromFile).filter(([name]) => !subjects.has(subjectOf(name)));
  return { ...environment, ...Object.fromEntries(added) };
}

function readEnvFile(named: string | undefined, folder: string): Environment {
  try {
    return parseEnv(readFileSync(named || join(folder, ".env"), "utf8"));
  } catch (cause) {
    const isAbsent = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
    if (isAbsent && !named) return {};
    throw new UsageError(`The file ${named || ".env"} cannot be read.`, { cause });
  }
}

/** What a variable is about, whichever of its forms it is in. */
function subjectOf(name: string): string {
  return name.replace(/_FILE$/, "").replace(/_(?:SEED_PHRASE|PRIVATE_KEY)$/, "");
}
