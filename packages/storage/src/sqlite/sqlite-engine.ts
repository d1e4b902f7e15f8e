import { setTimeout as sleep } from "node:timers/promises";
import { CompiledQuery, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import { isDatabaseError } from "../database-error.ts";
import { memoryPath } from "../database-url.ts";
import type { Engine } from "../engine.ts";
import { createLocalNotifications } from "../notifications.ts";
import { canonicalPath } from "./canonical-path.ts";
import { createLogSync, type LogSync } from "./log-sync.ts";
import { type OpenFile, watchOpenFile } from "./open-file.ts";
import { createReaderDriver, startReaderThread } from "./reader-thread.ts";
import { refuseForeignFiles } from "./refuse-foreign-files.ts";
import { openSqliteConnection, type SqliteConnection } from "./sqlite-connection.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import { createSqliteDriver } from "./sqlite-driver.ts";
import { builtInSqlite, loadSqlite } from "./sqlite-library.ts";

export interface SqliteEngineOptions {
  path: string;
  label: string;
  readOnly: boolean;
  create: boolean;
  durable: boolean;
  lockTimeoutMs: number;
  cacheMebibytes: number;
  incrementalVacuum: boolean;
  onBackgroundError: (error: unknown) => void;
}

/**
 * Opens the file, or a database in memory. Rejects with a `DatabaseError` when it cannot be opened
 * or is none.
 */
export async function openSqliteEngine(options: SqliteEngineOptions): Promise<Engine> {
  const { path, label, readOnly, durable, lockTimeoutMs } = options;
  const library = await loadSqlite();
  const open = (openReadOnly: boolean) =>
    openSqliteConnection({ library, path, label, readOnly: openReadOnly, create: options.create });

  const writer = open(readOnly);
  let reader: SqliteConnection | undefined;
  let log: LogSync | undefined;
  let file: OpenFile | undefined;
  try {
    const journal = await configure(writer, options);
    if (journal === "wal" && !readOnly) log = createLogSync({ path, label });
    if (!readOnly && path !== memoryPath) {
      reader = open(true);
      reader.exec(
        `pragma busy_timeout = ${readerBusyMs}; pragma cache_size = ${cacheSize(options)}`,
      );
      file = await watchOpenFile({ path, label });
    }
  } catch (error) {
    reader?.close();
    writer.close();
    throw error;
  }
  const begin = readOnly ? "begin" : "begin immediate";
  return {
    dialect: sqliteDialect,
    kyselyDialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () =>
        createSqliteDriver({
          writer,
          reader,
          begin,
          lockTimeoutMs,
          sync: async () => (durable ? log?.sync() : undefined),
          close: async () => log?.close(),
          beforeLastClose: async () => file?.emptyLog(writer),
          afterClose: async () => file?.setLogAside(),
        }),
      createIntrospector: (kysely) => new SqliteIntrospector(kysely),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
    setDurability: async () => {},
    sync: async () => log?.sync(),
    async verify() {
      await file?.verify();
      log?.verify();
    },
    notifications: createLocalNotifications(options.onBackgroundError),
  };
}

/**
 * Opens the file in a thread of its own, for reading. Rejects with a `DatabaseError` when it cannot
 * be opened or is none. Where the thread's program is missing, as in a bundle of one file, the
 * database is opened in this thread.
 */
export async function openSqliteReaderEngine(options: SqliteEngineOptions): Promise<Engine> {
  const { path, label } = options;
  const start = async () => {
    const file = canonicalPath(path);
    refuseForeignFiles({ file, label, readOnly: true });
    return startReaderThread({
      path: file,
      label,
      pragmas: `pragma busy_timeout = ${readerBusyMs}; pragma cache_size = ${cacheSize(options)}`,
      isBuiltIn: builtInSqlite() !== undefined,
    });
  };
  const thread = await start();
  if (thread === undefined) return openSqliteEngine(options);
  return {
    dialect: sqliteDialect,
    kyselyDialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => createReaderDriver(thread, start),
      createIntrospector: (kysely) => new SqliteIntrospector(kysely),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
    setDurability: async () => {},
    sync: async () => {},
    verify: async () => {},
    notifications: createLocalNotifications(options.onBackgroundError),
  };
}

// A write-ahead log makes readers wait only while it is created, recovered or removed.
const readerBusyMs = 1_000;
const logLimitBytes = 64 * 1024 * 1024;
// Checkpoint size. Moving the log into the file waits for the disk, and writes a page once for any
// number of changes.
const pagesPerCheckpoint = 8_000;

/**
 * Settings of the writing connection; returns the kind of its journal. A change of the journal
 * needs the file exclusively for a moment. With a write-ahead log a commit does not wait for the
 * disk, which would block the event loop. Callers that need the disk wait by `LogSync`.
 */
async function configure(writer: SqliteConnection, options: SqliteEngineOptions): Promise<unknown> {
  const { readOnly, durable, lockTimeoutMs, incrementalVacuum } = options;
  const settings = [
    `pragma busy_timeout = ${readOnly ? readerBusyMs : 0}`,
    // Before the journal, which writes the first page: later it has no effect.
    ...(incrementalVacuum && !readOnly ? ["pragma auto_vacuum = incremental"] : []),
    "pragma foreign_keys = on",
    // Undo data of a statement or a savepoint would go to a file for every transaction. Sorts of
    // this connection are in memory too, as a whole, so indexes are made with their tables. One
    // over a large table would take 100 bytes for each of its rows.
    "pragma temp_store = memory",
    `pragma cache_size = ${cacheSize(options)}`,
    `pragma journal_size_limit = ${logLimitBytes}`,
    `pragma wal_autocheckpoint = ${pagesPerCheckpoint}`,
  ].join("; ");
  // The first statement that reads the file: it detects whether this is a database.
  const setJournal = CompiledQuery.raw(`pragma journal_mode${readOnly ? "" : " = wal"}`);
  const deadline = performance.now() + lockTimeoutMs;
  for (;;) {
    try {
      writer.exec(settings);
      const [row] = writer.query<{ journal_mode: string }>(setJournal).rows;
      const journal = row?.journal_mode;
      const isSynced = durable && journal !== "wal";
      writer.exec(`pragma synchronous = ${isSynced ? "full" : "normal"}`);
      return journal;
    } catch (error) {
      if (!isDatabaseError(error, "busy") || performance.now() > deadline) throw error;
    }
    await sleep(10);
  }
}

/** SQLite's form: negative for KiB instead of pages. */
function cacheSize({ cacheMebibytes }: SqliteEngineOptions): number {
  return -1024 * cacheMebibytes;
}
