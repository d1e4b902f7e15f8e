import { randomUUID } from "node:crypto";
import { readlinkSync } from "node:fs";
import { link, readFile, stat, unlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { PaymentError } from "./payment-error.ts";

export interface FileLockOptions {
  /** How long to wait for whoever has the lock. Default 10 s. */
  lockTimeoutMs?: number | undefined;
}

const holderSchema = z.object({
  id: z.uuid(),
  pid: z.number().int(),
  /** In which the process has this id: on Linux, containers with one name may count for themselves. */
  pidNamespace: z.string().optional(),
  host: z.string(),
});
type Holder = z.infer<typeof holderSchema>;

const pidNamespace = readPidNamespace();
const lastInThisThread = new Map<string, Promise<unknown>>();

/**
 * Does `work` while no other process, thread or caller does work on the same file: those in this
 * thread queue up, the others meet at `<file>.lock`. A lock is held for milliseconds; one whose
 * process died is broken, one whose holder cannot be judged (on another machine that shares the
 * disk) is waited for.
 *
 * @throws PaymentError `budget_file_unavailable` when the lock does not become free in time.
 */
export async function withFileLock<T>(
  path: string,
  work: () => Promise<T>,
  options: FileLockOptions = {},
): Promise<T> {
  const previous = lastInThisThread.get(path);
  const mine = (async () => {
    await previous?.catch(() => undefined);
    const release = await acquire(`${path}.lock`, options.lockTimeoutMs ?? 10_000);
    try {
      return await work();
    } finally {
      await release();
    }
  })();
  lastInThisThread.set(path, mine);
  try {
    return await mine;
  } finally {
    if (lastInThisThread.get(path) === mine) lastInThisThread.delete(path);
  }
}

async function acquire(lock: string, timeoutMs: number): Promise<() => Promise<void>> {
  const me = describeHolder(process.pid);
  const ticket = `${lock}.${me.id}`;
  const deadline = performance.now() + timeoutMs;
  try {
    try {
      await writeFile(ticket, JSON.stringify(me), { flag: "wx", mode: 0o600 });
      // A link appears with its content, so nobody ever reads a lock without a holder.
      while (!(await tryTo(() => link(ticket, lock), "EEXIST"))) {
        await breakIfAbandoned(lock);
        if (performance.now() > deadline) throw await stillLocked(lock);
        await sleep(2 + Math.random() * 10);
      }
    } finally {
      await unlink(ticket).catch(() => undefined);
    }
  } catch (cause) {
    if (cause instanceof PaymentError) throw cause;
    throw new PaymentError("budget_file_unavailable", "The budget file cannot be locked", {
      cause,
    });
  }
  // The work is done: a lock file that cannot be removed is the next caller's to report.
  return async () => {
    await unlink(lock).catch(() => undefined);
  };
}

// Two processes may find the same lock abandoned, and the slower one must not remove what the
// faster one has locked anew. So the right to remove the lock with this id is itself a file that
// only one can create; under it, a lock that still has this id can be touched by nobody else.
async function breakIfAbandoned(lock: string): Promise<void> {
  const holder = await readHolder(lock);
  if (holder === undefined || !(await isAbandoned(lock, holder))) return;
  const right = `${lock}.${holder.id}.broken`;
  if (!(await tryTo(() => writeFile(right, "", { flag: "wx" }), "EEXIST"))) return;
  try {
    if ((await readHolder(lock))?.id === holder.id) await unlink(lock);
  } finally {
    await unlink(right);
  }
}

async function isAbandoned(lock: string, holder: Holder): Promise<boolean> {
  if (holder.host !== hostname()) return false;
  const isCountedHere = holder.pidNamespace === pidNamespace;
  if (isCountedHere && holder.pid !== process.pid) return !isRunning(holder.pid);
  // A container begins with the same process id again, and counts anew: what is older than this process is of its
  // earlier life. What is younger may be of a container beside it.
  const startedAt = Date.now() - process.uptime() * 1000;
  const madeAt = await stat(lock).then(
    ({ mtimeMs }) => mtimeMs,
    () => Number.POSITIVE_INFINITY,
  );
  return madeAt < startedAt - 1000;
}

/** A process of this machine as it stands in a lock. */
export function describeHolder(pid: number): Holder {
  return { id: randomUUID(), pid, pidNamespace, host: hostname() };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it runs, and is somebody else's.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}

/** Who has the lock; `undefined` when it has just become free. */
async function readHolder(lock: string): Promise<Holder | undefined> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(lock, "utf8")));
  } catch {
    return undefined;
  }
}

async function stillLocked(lock: string): Promise<PaymentError> {
  const holder = await readHolder(lock);
  const by = holder ? ` by process ${holder.pid} on ${holder.host}` : "";
  return new PaymentError(
    "budget_file_unavailable",
    `The budget file is locked${by}; if that is gone, remove the file ${lock}`,
  );
}

function readPidNamespace(): string | undefined {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    // Only Linux has such a thing.
    return undefined;
  }
}

async function tryTo(work: () => Promise<void>, expected: string): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === expected) return false;
    throw error;
  }
}
