import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, opendir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import * as z from "zod";
import { followLinks, hasCode, syncDirectory } from "../files/own-file.ts";
import { PaymentError } from "../payment-error.ts";
import { type BudgetState, budgetStateSchema, emptyBudget } from "./budget-state.ts";
import type { BudgetStore } from "./budget-store.ts";
import { type FileLockOptions, type HeldLock, withFileLock } from "./file-lock.ts";

/**
 * Keeps a budget in a JSON file that any number of processes may share. An absent file is an empty
 * budget. An unreadable one is never overwritten, and nothing is paid.
 */
export function createFileStore(file: string, lockOptions: FileLockOptions = {}): BudgetStore {
  let isTidy = false;
  return {
    async update(change) {
      // One lock per real path: replacing the file keeps a link to it intact. Two names would be
      // two budgets.
      const path = await followLinks(resolve(file));
      return withFileLock(
        path,
        async (lock) => {
          await refuseHardLinks(path);
          const before = await readState(path);
          const { state, result } = change(before);
          if (state !== before) {
            await writeState(path, state, lock);
            if (!isTidy) await removeLeftovers(path).catch(() => undefined);
            isTidy = true;
          }
          return result;
        },
        lockOptions,
      );
    },
  };
}

// Each write replaces the file under this name alone. A hard link would keep the old state, and
// spend it again.
async function refuseHardLinks(path: string): Promise<void> {
  const links = await stat(path).then(
    (stats) => (stats.isFile() ? stats.nlink : 1),
    () => 1,
  );
  if (links <= 1) return;
  throw new PaymentError(
    "budget_file_unavailable",
    `The budget file has ${links} names (hard links), and each would be a budget of its own: keep one, and make the others symbolic links`,
  );
}

/**
 * Some 40,000 payments without an outcome, or 250,000 hosts within an hour. A larger file would
 * stop the program for seconds at each payment.
 */
const maxMebibytes = 32;

const versionSchema = z.object({ version: z.number().int().min(2) });

async function readState(path: string): Promise<BudgetState> {
  let text: string;
  try {
    text = await readRegularFile(path);
  } catch (cause) {
    if (hasCode(cause, "ENOENT")) return emptyBudget;
    if (cause instanceof PaymentError) throw cause;
    throw new PaymentError("budget_file_unavailable", "The budget file cannot be read", { cause });
  }
  const json = parseJson(text);
  const parsed = budgetStateSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const newer = versionSchema.safeParse(json).data;
  if (newer !== undefined) {
    throw new PaymentError(
      "budget_file_corrupt",
      `The budget file is of version ${newer.version}, which a newer client wrote; this one reads version 1`,
    );
  }
  throw new PaymentError(
    "budget_file_corrupt",
    "The budget file is malformed: repair it, or remove it to start a new day",
  );
}

/** Reading a pipe would wait for ever, and hold the lock. */
async function readRegularFile(path: string): Promise<string> {
  // Windows has no such flag, and no pipes among its files.
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new Error("It is not a regular file");
    if (stats.size > maxMebibytes * 2 ** 20) {
      throw new PaymentError(
        "budget_file_unavailable",
        `The budget file has more than ${maxMebibytes} MiB, far more than the bookings of a day: repair it, or remove it to start a new day`,
      );
    }
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const temporaryEnd = ".tmp";
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** A writer that sleeps longer than this fails at its rename, and pays nothing. */
const minLeftoverAgeMs = 3_600_000;

/** Removes files that killed processes did not come to rename. */
async function removeLeftovers(path: string): Promise<void> {
  const begin = `${basename(path)}.`;
  const folder = await opendir(dirname(path));
  for await (const { name } of folder) {
    const isOurs = name.startsWith(begin) && name.endsWith(temporaryEnd);
    if (!isOurs || !uuid.test(name.slice(begin.length, -temporaryEnd.length))) continue;
    const leftover = join(dirname(path), name);
    const stats = await lstat(leftover);
    if (!stats.isFile() || stats.mtimeMs > Date.now() - minLeftoverAgeMs) continue;
    await rm(leftover, { force: true });
  }
}

// Atomic replace: a reader, or a crash at any moment, finds either the old state or the new one.
// The new one is complete on disk before the rename, and the name is on disk before any signature.
async function writeState(path: string, state: BudgetState, lock: HeldLock): Promise<void> {
  // Its own name: a process that wakes late must not write what another one is about to rename.
  const temporary = `${path}.${randomUUID()}${temporaryEnd}`;
  const text = JSON.stringify(
    state,
    (_key, value: unknown) => (typeof value === "bigint" ? value.toString() : value),
    1,
  );
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(`${text}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    // A process suspended since its read would undo later bookings.
    if (!(await lock.isIntact())) throw new Error("Its lock file was removed meanwhile");
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw new PaymentError("budget_file_unavailable", "The budget file cannot be written", {
      cause,
    });
  }
}
