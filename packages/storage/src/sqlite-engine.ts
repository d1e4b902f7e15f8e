import { setTimeout as sleep } from "node:timers/promises";
import { SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import { isDatabaseError } from "./database-error.ts";
import { MEMORY_PATH } from "./database-url.ts";
import { sqliteDialect } from "./dialect.ts";
import type { Engine } from "./engine.ts";
import { createLocalNotifications } from "./notifications.ts";
import { openSqliteConnection, type SqliteConnection } from "./sqlite-connection.ts";
import { createSqliteDriver } from "./sqlite-driver.ts";
import { loadSqlite } from "./sqlite-library.ts";

export interface SqliteEngineOptions {
  path: string;
  label: string;
  readOnly: boolean;
  durable: boolean;
  lockTimeoutMs: number;
  onBackgroundError: (error: unknown) => void;
}

/** Opens the file, or a database in memory. Rejects with a `DatabaseError` when it cannot be opened or is none. */
export async function openSqliteEngine(options: SqliteEngineOptions): Promise<Engine> {
  const { path, label, readOnly, lockTimeoutMs } = options;
  const library = await loadSqlite();
  const open = (openReadOnly: boolean) =>
    openSqliteConnection({ library, path, label, readOnly: openReadOnly });

  const writer = open(readOnly);
  let reader: SqliteConnection | undefined;
  try {
    await configure(writer, options);
    if (!readOnly && path !== MEMORY_PATH) {
      reader = open(true);
      reader.exec(`pragma busy_timeout = ${readerBusyMs}; pragma cache_size = ${cacheKibibytes}`);
    }
  } catch (error) {
    writer.close();
    throw error;
  }
  const begin = readOnly ? "begin" : "begin immediate";
  return {
    dialect: sqliteDialect,
    kyselyDialect: {
      createAdapter: () => new ConcurrentSqliteAdapter(),
      createDriver: () => createSqliteDriver({ writer, reader, begin, lockTimeoutMs }),
      createIntrospector: (kysely) => new SqliteIntrospector(kysely),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
    notifications: createLocalNotifications(options.onBackgroundError),
  };
}

// Negative: in KiB instead of pages.
const cacheKibibytes = -16_000;
// A write-ahead log makes readers wait only while it is created, recovered or removed.
const readerBusyMs = 1_000;
const logLimitBytes = 64 * 1024 * 1024;

/** Settings of the writing connection. Changing the journal needs the file for itself for a moment. */
async function configure(
  writer: SqliteConnection,
  { readOnly, durable, lockTimeoutMs }: SqliteEngineOptions,
): Promise<void> {
  const settings = [
    `pragma busy_timeout = ${readOnly ? readerBusyMs : 0}`,
    "pragma foreign_keys = on",
    `pragma cache_size = ${cacheKibibytes}`,
    // The first statement that reads the file: it finds out whether this is a database.
    readOnly ? "pragma schema_version" : "pragma journal_mode = wal",
    `pragma synchronous = ${durable ? "full" : "normal"}`,
    `pragma journal_size_limit = ${logLimitBytes}`,
  ].join("; ");
  const deadline = performance.now() + lockTimeoutMs;
  for (;;) {
    try {
      return writer.exec(settings);
    } catch (error) {
      if (!isDatabaseError(error, "busy") || performance.now() > deadline) throw error;
    }
    await sleep(10);
  }
}

// Kysely's own lock would be held by every query; the driver's lock lets readers pass.
class ConcurrentSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}
