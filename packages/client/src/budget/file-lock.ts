import { lstat, open, readFile, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { createKeyedMutex } from "@coinslot/concurrency";
import * as z from "zod";
import { PaymentError } from "../payment-error.ts";
import { type KernelLock, loadSqlite, type SqliteLibrary, tryToLock } from "./sqlite-lock.ts";

export interface FileLockOptions {
  /** Longest wait for the lock. Default 10 s. */
  lockTimeoutMs?: number | undefined;
}

const maxPauseMs = 500;

const inThisThread = createKeyedMutex<string>();

/** A lock that is held. */
export interface HeldLock {
  /**
   * Resolves to whether its file is still there. A file that was removed and created again is
   * another lock, which another process may hold.
   */
  isIntact(): Promise<boolean>;
}

/**
 * Runs `work` with exclusive access to the file, across processes, threads and callers. Callers in
 * this thread queue up; the others meet at `<file>.lock`. That file stays, and is empty. The kernel
 * holds the lock, and frees it when the process ends. A lock is held for milliseconds.
 *
 * @throws PaymentError `budget_file_unavailable` when the lock does not become free in time.
 */
export async function withFileLock<T>(
  path: string,
  work: (lock: HeldLock) => Promise<T>,
  options: FileLockOptions = {},
): Promise<T> {
  return inThisThread.run(path, async () => {
    const lock = await acquire(`${path}.lock`, options.lockTimeoutMs ?? 10_000);
    try {
      return await work(lock);
    } finally {
      lock.release();
    }
  });
}

/**
 * Locks a file of its own, without waiting. Made for locks that are held while a request runs: the
 * kernel frees it when the process ends.
 *
 * @param lock path of the lock file, which stays and is empty
 * @returns `undefined` while another caller has it
 * @throws PaymentError `budget_file_unavailable` when the file cannot be locked
 */
export async function tryFileLock(lock: string): Promise<(HeldLock & KernelLock) | undefined> {
  try {
    return await tryOnce(await loadSqlite(), lock);
  } catch (cause) {
    if (cause instanceof PaymentError) throw cause;
    throw new PaymentError("budget_file_unavailable", "The lock file cannot be locked", { cause });
  }
}

async function tryOnce(
  sqlite: SqliteLibrary,
  lock: string,
): Promise<(HeldLock & KernelLock) | undefined> {
  await createEmpty(lock);
  if (!(await isEmptyFile(lock))) return undefined;
  await refuseJournal(lock);
  const before = await inodeOf(lock);
  const held = tryToLock(sqlite, lock);
  if (typeof held !== "object") return undefined;
  const isIntact = async () => before !== undefined && before === (await inodeOf(lock));
  if (await isIntact()) return { isIntact, release: held.release };
  held.release();
  return undefined;
}

async function acquire(lock: string, timeoutMs: number): Promise<HeldLock & KernelLock> {
  const start = performance.now();
  try {
    const sqlite = await loadSqlite();
    for (;;) {
      const held = await tryOnce(sqlite, lock);
      if (held !== undefined) return held;
      const waitedMs = performance.now() - start;
      if (waitedMs > timeoutMs) throw await stillLocked(lock);
      // Backoff: hundreds of waiting processes would leave no processor to the holder.
      await sleep(2 + Math.random() * Math.min(maxPauseMs, 10 + waitedMs / 2));
    }
  } catch (cause) {
    if (cause instanceof PaymentError) throw cause;
    throw new PaymentError("budget_file_unavailable", "The budget file cannot be locked", {
      cause,
    });
  }
}

// A process loses its POSIX locks when it closes any descriptor of the file. So only SQLite, which
// handles that, opens an existing lock file; "wx" opens only a file that it creates.
async function createEmpty(lock: string): Promise<void> {
  try {
    const handle = await open(lock, "wx", 0o600);
    await handle.close();
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

/**
 * An earlier version wrote into its lock. Of an empty file, SQLite plays back no journal: a foreign
 * one may name any file, which SQLite then deletes. A file of one byte is empty to SQLite, which
 * makes such files on macOS's FAT volumes.
 *
 * @throws PaymentError where it is no regular file. Through a link, SQLite would change the journal
 * of another database, or wait for a device
 */
async function isEmptyFile(lock: string): Promise<boolean> {
  const stats = await lstat(lock).catch(() => undefined);
  if (stats === undefined || stats.isFile()) return stats !== undefined && stats.size <= 1;
  throw new PaymentError("budget_file_unavailable", `${lock} is not a regular file: remove it`);
}

/** A lock is never written, so none of ours has a journal. SQLite might play back a foreign one. */
async function refuseJournal(lock: string): Promise<void> {
  const journal = `${lock}-journal`;
  const found = await lstat(journal).catch(() => undefined);
  if (found === undefined) return;
  throw new PaymentError("budget_file_unavailable", `${journal} is of no lock: remove it`);
}

async function inodeOf(path: string): Promise<bigint | undefined> {
  return stat(path, { bigint: true }).then(
    ({ ino }) => ino,
    () => undefined,
  );
}

const earlierHolderSchema = z.object({ pid: z.number().int(), host: z.string() });

// Version 0.1.0 wrote its process id into the lock file. Its lock is honoured, and it honours ours.
async function stillLocked(lock: string): Promise<PaymentError> {
  const { size } = await stat(lock).catch(() => ({ size: 0 }));
  if (size <= 1) {
    return new PaymentError(
      "budget_file_unavailable",
      "The budget file is locked by another process that is still running",
    );
  }
  const holder = await readFile(lock, "utf8").then(
    (text) => earlierHolderSchema.safeParse(parseJson(text)).data,
    () => undefined,
  );
  const by = holder ? `process ${holder.pid} on ${holder.host}, of an` : "an";
  return new PaymentError(
    "budget_file_unavailable",
    `The budget file is locked by ${by} earlier version of this client; end that process, then remove ${lock}`,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
