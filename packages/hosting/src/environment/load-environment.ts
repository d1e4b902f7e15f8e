import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "dotenv";
import type { Setting } from "../setting.ts";
import { passOver } from "./pass-over.ts";
import { readRegularFile } from "./read-regular-file.ts";
import type { Environment } from "./read-secret.ts";

/** An .env file that cannot be read. */
export class EnvironmentFileError extends Error {
  override readonly name = "EnvironmentFileError";
}

/** An environment, with the part of it that came from a file. */
export interface LoadedEnvironment {
  env: Environment;
  file: EnvironmentFile | undefined;
}

/** A file of variables. */
export interface EnvironmentFile {
  path: string;
  /** True if it lay in the folder, and was not named by the environment. */
  isOfFolder: boolean;
  /** The variables that were taken from it. */
  values: Readonly<Record<string, string>>;
}

/** A folder's secrets and settings are small. */
const maxNamedBytes = 1_048_576;

/**
 * The environment with the variables of an .env file: the one of `COINSLOT_ENV_FILE`, else `.env`
 * in the folder.
 *
 * A folder may come from anywhere, so only the given settings are taken from its file. Variables
 * that steer the process itself, such as `NODE_OPTIONS` or `LD_PRELOAD`, are not, nor is
 * `COINSLOT_ENV_FILE`. The environment overrides the file by subject, not by name: see `passOver`.
 *
 * @throws EnvironmentFileError when the file cannot be read, or names a file that is not regular;
 *   the message repeats nothing of it
 */
export function loadEnvironment(options: {
  environment: Environment;
  folder: string;
  /** All settings that may come from a file. */
  settings: readonly Setting[];
}): LoadedEnvironment {
  const { environment, folder, settings } = options;
  const named = environment.COINSLOT_ENV_FILE || undefined;
  const path = named ?? join(folder, ".env");
  const text = readText(path, named);
  if (text === undefined) return { env: environment, file: undefined };
  if (named === undefined) refuseLongBlanks(text);
  const forms = settings.map(toPattern);
  const ours = Object.entries(parse(text)).filter(([name]) =>
    forms.some((form) => form.test(name)),
  );
  const values = passOver(environment, Object.fromEntries(ours));
  if (named === undefined) requireRegularFiles(values);
  return {
    env: { ...environment, ...values },
    file: { path, isOfFolder: named === undefined, values },
  };
}

function readText(path: string, named: string | undefined): string | undefined {
  try {
    return named === undefined ? readRegularFile(path) : readFileSync(path, "utf8");
  } catch (cause) {
    const isAbsent = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
    if (isAbsent && named === undefined) return undefined;
    const kind = named === undefined ? "a regular file of at most 64 KiB" : "a file";
    const problem = `${named ?? ".env"}: cannot be read. Make it ${kind} that this user may read, or remove it`;
    throw new EnvironmentFileError(problem, { cause });
  }
}

/** The parser looks at a run of blanks once for each of its lines: 64 KiB took nine seconds. */
const maxBlanks = 1000;

function refuseLongBlanks(text: string): void {
  if (text.split(/\S+/).every(({ length }) => length <= maxBlanks)) return;
  const problem = `.env: has more than ${maxBlanks} blanks in a row: remove them`;
  throw new EnvironmentFileError(problem);
}

/**
 * Reading a pipe may block forever, signals included, and a file of `/proc` may seem regular and
 * never end. A file that cannot be opened is reported by its reader.
 */
function requireRegularFiles(values: Readonly<Record<string, string>>): void {
  for (const [name, path] of Object.entries(values)) {
    // Readers take a path without the space around it.
    if (!/_(?:FILE|CONFIG)$/.test(name) || path.trim() === "") continue;
    try {
      readRegularFile(path.trim(), maxNamedBytes);
    } catch (cause) {
      const isUnopened = cause instanceof Error && "syscall" in cause && cause.syscall === "open";
      if (isUnopened) continue;
      const problem = `.env: ${name} does not name a regular file of at most 1 MiB`;
      throw new EnvironmentFileError(problem, { cause });
    }
  }
}

/** The names that a setting has in an environment. */
function toPattern({ name }: Setting): RegExp {
  const form = name.replace("<CHAIN_ID>", "[1-9][0-9]*").replace("<CHAIN>", "[A-Z0-9_]+");
  return new RegExp(`^${form}(?:_FILE)?$`);
}
