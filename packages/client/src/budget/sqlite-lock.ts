import { PaymentError } from "../payment-error.ts";

/** The part of `node:sqlite` in use. `@photostructure/sqlite` has the same interface. */
export interface SqliteLibrary {
  DatabaseSync: new (path: string) => SqliteDatabase;
}

/** A connection to a database of SQLite. */
export interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): {
    run(...parameters: (string | number | null)[]): unknown;
    get(...parameters: (string | number | null)[]): unknown;
    all(...parameters: (string | number | null)[]): unknown[];
  };
  close(): void;
}

const busy = 5;
/** Result code of a file that is no database of SQLite. */
export const notADatabase = 26;

/** An exclusive kernel lock that ends with `release`, or with the process. */
export interface KernelLock {
  release(): void;
}

/**
 * Tries once to lock a file, by an exclusive transaction of SQLite that never writes.
 *
 * SQLite serves as a lock only. Node has no call for file locks, and SQLite has the kernel's on
 * every platform. The kernel releases a lock when its process ends, however that ends. Process ids,
 * host names, container names and clocks play no part.
 *
 * @returns `busy` while another holder has it, `foreign` when the file is not of this kind
 */
export function tryToLock(
  { DatabaseSync }: SqliteLibrary,
  path: string,
): KernelLock | "busy" | "foreign" {
  const database = new DatabaseSync(path);
  try {
    // The file stays empty: without a journal of its own, a killed process leaves nothing beside
    // it.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return { release: () => database.close() };
  } catch (error) {
    database.close();
    const code = sqliteCodeOf(error);
    if (code === busy) return "busy";
    if (code === notADatabase) return "foreign";
    throw error;
  }
}

/**
 * SQLite, loaded when the first budget file is used: Node's own, else `@photostructure/sqlite`. The
 * latter is an optional peer: its binaries weigh 29 MB, and Node has SQLite built in from 22.13 on.
 *
 * @throws PaymentError `budget_file_unavailable` when there is neither.
 */
export async function loadSqlite(): Promise<SqliteLibrary> {
  const builtIn: unknown = process.getBuiltinModule("node:sqlite");
  if (isSqlite(builtIn)) return builtIn;
  try {
    return await import("@photostructure/sqlite");
  } catch (cause) {
    throw new PaymentError(
      "budget_file_unavailable",
      "A budget file needs SQLite for its lock. Node has it from 22.13 on; for older versions: npm install @photostructure/sqlite",
      { cause },
    );
  }
}

function isSqlite(library: unknown): library is SqliteLibrary {
  return typeof library === "object" && library !== null && "DatabaseSync" in library;
}

/** The primary result code; the bits above it say more. */
export function sqliteCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}
