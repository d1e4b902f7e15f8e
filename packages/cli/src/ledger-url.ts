import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Option } from "commander";
import { UsageError } from "./exit-code.ts";
import type { Io } from "./io.ts";
import { readSecret } from "./read-secret.ts";
import type { Terminal } from "./terminal.ts";

const usualLedger = "sqlite:./coinslot.db";
const inMemory = "sqlite::memory:";

/** `--ledger`, for a ledger whose URL holds no password. */
export function ledgerOption(): Option {
  return new Option(
    "--ledger <url>",
    `the ledger, such as ${usualLedger}; default: COINSLOT_LEDGER`,
  );
}

/**
 * Location of the ledger: `--ledger`, else `COINSLOT_LEDGER` or the file that
 * `COINSLOT_LEDGER_FILE` names, else the usual file.
 *
 * @throws UsageError for a URL with a password among the options, which every process list shows
 */
export function readLedgerUrl(env: Terminal["env"], option: string | undefined): string {
  if (option === undefined) return readSecret(env, "COINSLOT_LEDGER") ?? usualLedger;
  const hasPassword = URL.canParse(option) && new URL(option).password !== "";
  if (!hasPassword) return option;
  throw new UsageError(
    "A password among the options is visible to every user of this machine: set COINSLOT_LEDGER, or COINSLOT_LEDGER_FILE.",
  );
}

/** The path of the file behind the URL of a SQLite ledger; `undefined` for every other ledger. */
export function ledgerFile(url: string, folder: string): string | undefined {
  const path = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  return path === undefined || path === ":memory:" ? undefined : resolve(folder, path);
}

/** Returns whether there is no ledger to open: a file that does not exist, or another's memory. */
export function isLedgerAbsent(url: string, folder: string): boolean {
  if (url === inMemory) return true;
  const file = ledgerFile(url, folder);
  return file !== undefined && !existsSync(file);
}

/**
 * Location of a seller's ledger, for a command beside it.
 *
 * @throws UsageError where no ledger is there, or none that another process can open
 */
export function requireLedgerUrl(
  { env }: Pick<Terminal, "env">,
  { folder }: Pick<Io, "folder">,
  option: string | undefined,
): string {
  const url = readLedgerUrl(env, option);
  if (!isLedgerAbsent(url, folder)) return url;
  if (url === inMemory)
    throw new UsageError(
      "The ledger of COINSLOT_LEDGER is kept in the seller's memory: name a file, such as sqlite:./coinslot.db, to the seller and here.",
    );
  throw new UsageError(
    "The ledger does not exist yet: a seller creates it at its start. Does COINSLOT_LEDGER, or --ledger, name your seller's?",
  );
}
