import { setTimeout as sleep } from "node:timers/promises";
import {
  createLeases,
  createWriter,
  type Database,
  DatabaseError,
  type DatabaseFileLock,
  isDatabaseError,
  lockDatabaseFile,
  migrate,
  openDatabase,
  requireMigrated,
} from "@coinslot/storage";
import { forgetProcesses } from "./maintenance/processes.ts";
import { ledgerMigrations } from "./migrations/ledger-migrations.ts";
import type { LedgerSchema } from "./schema.ts";

export interface OpenLedgerOptions {
  /** `sqlite:./file.db` or `postgres://…`. */
  url: string;
  /** Name of this process among those that share the ledger. New for each start. */
  processId: string;
  /**
   * For programs that only read, beside the one that writes: no lock is taken, nothing is written.
   */
  readOnly?: boolean | undefined;
  /** A database without a ledger is refused, and left to the restore that has not filled it yet. */
  mustExist?: boolean | undefined;
  onBackgroundError?: ((error: unknown) => void) | undefined;
  /** Waits between two attempts to take the file. Default a timer. */
  pause?: ((ms: number) => Promise<void>) | undefined;
}

const lockPauseMs = 50;
const maxLockPauses = 20;

/** The database of a ledger, brought to the newest schema. */
export interface LedgerDatabase {
  database: Database<LedgerSchema>;
  close(): Promise<void>;
}

/**
 * Opens the ledger's database and brings its schema up to date.
 *
 * @throws DatabaseError when it cannot be reached, belongs to a newer version, or, as a SQLite
 * file, to another process. Two processes would settle the same payments.
 */
export async function openLedger(options: OpenLedgerOptions): Promise<LedgerDatabase> {
  const { url, processId, readOnly = false, mustExist = false, onBackgroundError } = options;
  const lock = readOnly ? undefined : await takeFile(url, options.pause ?? sleep);
  let database: Database<LedgerSchema> | undefined;
  try {
    database = await openDatabase<LedgerSchema>({
      url,
      readOnly,
      create: !mustExist,
      applicationName: "coinslot-facilitator",
      // The newest rows are read again and again. The system has the rest of the file in memory
      // too.
      cacheMebibytes: 2,
      incrementalVacuum: true,
      ...(onBackgroundError ? { onBackgroundError } : {}),
    });
    if (mustExist) await requireTables(database);
    await (readOnly ? requireMigrated : migrate)(database, ledgerMigrations);
    if (!readOnly && database.engine === "sqlite") await forgetTheDead(database, processId);
    return { database, close: () => closeBoth(database, lock) };
  } catch (error) {
    await closeBoth(database, lock);
    throw error;
  }
}

/** Takes a SQLite file. A command of the operator may hold it for a moment; a seller stays. */
async function takeFile(
  url: string,
  pause: (ms: number) => Promise<void>,
): Promise<DatabaseFileLock | undefined> {
  for (let pauses = 0; ; pauses += 1) {
    try {
      return await lockDatabaseFile(url);
    } catch (error) {
      if (!isDatabaseError(error, "file-locked") || pauses >= maxLockPauses) throw error;
    }
    await pause(lockPauseMs);
  }
}

/** The holder of the file's lock is alone. All that other processes held or leased is over. */
async function forgetTheDead(database: Database<LedgerSchema>, processId: string): Promise<void> {
  await createWriter(database).write(async (transaction) => {
    await forgetProcesses({ transaction, target: { allBut: processId } });
  });
  await createLeases({ database }).endAll();
}

async function requireTables({ transaction, dialect }: Database<LedgerSchema>): Promise<void> {
  if (await transaction((tx) => dialect.hasTable(tx, "payments"))) return;
  throw new DatabaseError("configuration", "The ledger's database is empty: restore it");
}

async function closeBoth(
  database: Database<LedgerSchema> | undefined,
  lock: DatabaseFileLock | undefined,
): Promise<void> {
  try {
    await database?.close();
  } finally {
    lock?.release();
  }
}
