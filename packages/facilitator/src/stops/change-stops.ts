import { setTimeout as sleep } from "node:timers/promises";
import {
  createWriter,
  DatabaseError,
  isDatabaseError,
  lockDatabaseFile,
  openDatabase,
  requireMigrated,
} from "@coinslot/storage";
import { changeStop } from "../ledger/maintenance/stops.ts";
import { ledgerMigrations } from "../ledger/migrations/ledger-migrations.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import { askSeller } from "../operators/ask-seller.ts";
import { readStopChange, type StopChange, type StopReport } from "./stop.ts";

/** The lock may be held for a moment: by a command, or by a seller that starts. */
const patienceMs = 3_000;
const retryMs = 50;

/**
 * Sets or clears a stop switch of a ledger, from outside of its sellers. On PostgreSQL they see it
 * in the table. The process that holds a SQLite file is asked by its socket. Without one, the file
 * is taken for the change.
 *
 * @example
 * ```ts
 * await changeStops({
 *   url: "sqlite:./coinslot.db",
 *   change: {
 *     operation: "set",
 *     target: { kind: "network", name: "eip155:9745" },
 *     reason: "maintenance until noon",
 *   },
 * });
 * ```
 *
 * @throws ConfigurationError for a malformed change, DatabaseError where the ledger cannot be
 * changed, Error where its holder refuses
 */
export async function changeStops(options: {
  /** `sqlite:./file.db` or `postgres://…`. */
  url: string;
  change: StopChange;
}): Promise<StopReport> {
  const { url } = options;
  const change = readStopChange(options.change);
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await changeByItself(url, change);
    } catch (error) {
      if (!isDatabaseError(error, "file-locked")) throw error;
      const report = await askSeller(url, change);
      if (report !== undefined) return report;
      if (performance.now() > deadline) throw unreachable(error);
    }
    await sleep(retryMs);
  }
}

async function changeByItself(url: string, change: StopChange): Promise<StopReport> {
  const lock = await lockDatabaseFile(url);
  try {
    const database = await openDatabase<LedgerSchema>({
      url,
      poolSize: 1,
      incrementalVacuum: true,
      applicationName: "coinslot-operator",
    });
    try {
      // Migrations are for sellers: processes of the previous release may run.
      await requireMigrated(database, ledgerMigrations);
      const { write } = createWriter(database);
      const { kysely: db, dialect, notify } = database;
      return await changeStop({ db, dialect, notify, write }, change);
    } finally {
      await database.close();
    }
  } finally {
    lock?.release();
  }
}

function unreachable(cause: DatabaseError): DatabaseError {
  return new DatabaseError(
    "file-locked",
    `${cause.message} It does not serve its operator: it is of an older release, or its log says why.`,
    { cause },
  );
}
