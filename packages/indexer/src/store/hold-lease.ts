import { type Clock, sleep } from "@coinslot/chain";
import {
  createLeases,
  type Database,
  type DatabaseFileLock,
  isDatabaseError,
  type Leases,
  lockDatabaseFile,
} from "@coinslot/storage";
import type { IndexerLogger } from "../logger.ts";
import type { IndexerSchema } from "./schema.ts";
import { createWriterLease, LeaseLostError, type WriterLease } from "./writer-lease.ts";

const leaseName = "coinslot_indexer";

export interface HoldLeaseOptions {
  database: Database<IndexerSchema>;
  /** The database's URL, which identifies the lock of a SQLite file. */
  url: string;
  /** Unique for each process that runs. */
  owner: string;
  leaseMs: number;
  clock: Clock;
  logger: IndexerLogger;
  signal: AbortSignal;
  /** Called when this process becomes the writer, and when it is no longer. */
  onRole: (role: "writer" | "standby") => void;
}

/**
 * Stands by until this process may write, and then lets `work` write until the writer lease is
 * lost. Then it stands by again. Ends when the signal is aborted. On SQLite the lock of the file
 * shows at once that the writer before is dead. On PostgreSQL its lease has to run out.
 *
 * Renews by itself, not by `acquireLease` of storage. A write locks the row of the lease until its
 * commit. So a renewal waits for it, and a write may outlast the lease. `acquireLease` would call
 * the lease lost by its deadline. That aborts the turn, and a long write stops at its next page and
 * rolls back. The next turn begins it again, for ever. Here it commits first. No other process can
 * take the lease meanwhile, and every write checks it. So while the database hangs, this process
 * calls itself the writer, and writes nothing.
 */
export async function holdLease(
  options: HoldLeaseOptions,
  work: (lease: WriterLease, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { database, leaseMs, clock, logger, signal } = options;
  const leases = createLeases({ database });
  while (!signal.aborted) {
    try {
      await takeTurn(options, leases, work);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof LeaseLostError)
        logger.warn({}, "Another process writes now: standing by");
      else if (isDatabaseError(error)) logger.warn({ error }, "The database does not answer");
      else throw error;
    }
    // Three times per lease duration.
    await sleep(clock, leaseMs / 3, signal).catch(() => undefined);
  }
}

/** Writes while this process holds the lease; returns if another process does. */
async function takeTurn(
  { database, url, owner, leaseMs, clock, logger, signal, onRole }: HoldLeaseOptions,
  leases: Leases,
  work: (lease: WriterLease, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const lock = await tryLock(url);
  if (lock === "taken") return;
  try {
    if (lock !== undefined) await leases.endAll();
    const held = await leases.acquire({ name: leaseName, owner, ttlMs: leaseMs });
    if (held === undefined) return;
    const lease = createWriterLease(database, { leases, lease: held });
    const turn = new AbortController();
    const end = () => turn.abort(signal.reason);
    signal.addEventListener("abort", end, { once: true });
    // Aborted while the writer lease was taken: the event does not fire again.
    if (signal.aborted) end();
    onRole("writer");
    logger.info({ owner }, "This process writes");
    try {
      const renewing = renewAgainAndAgain(lease, turn.signal);
      // The end of one part ends the other, and the lease is released after both.
      const parts = [renewing, work(lease, turn.signal)].map(endingTheTurn);
      for (const part of await Promise.allSettled(parts))
        if (part.status === "rejected") throw part.reason;
    } finally {
      onRole("standby");
      signal.removeEventListener("abort", end);
      await lease.release();
    }

    function endingTheTurn(part: Promise<void>) {
      return part.finally(() => turn.abort(new LeaseLostError()));
    }
  } finally {
    lock?.release();
  }

  async function renewAgainAndAgain(lease: WriterLease, until: AbortSignal): Promise<void> {
    while (!until.aborted) {
      await sleep(clock, leaseMs / 3, until).catch(() => undefined);
      if (until.aborted) return;
      try {
        await lease.renew(leaseMs);
      } catch (error) {
        // While the database is away the lease may survive; every transaction checks it.
        if (!isDatabaseError(error)) throw error;
        logger.warn({ error }, "The lease could not be renewed");
      }
    }
  }
}

async function tryLock(url: string): Promise<DatabaseFileLock | undefined | "taken"> {
  try {
    return await lockDatabaseFile(url);
  } catch (error) {
    if (isDatabaseError(error, "file-locked")) return "taken";
    throw error;
  }
}
