import { lstatSync, statSync } from "node:fs";
import { DatabaseError, isDatabaseError } from "../database-error.ts";
import { memoryPath, parseDatabaseUrl } from "../database-url.ts";
import { canonicalPath } from "./canonical-path.ts";
import { openSqliteConnection } from "./sqlite-connection.ts";
import { loadSqlite } from "./sqlite-library.ts";

/** A held lock on a database file. */
export interface DatabaseFileLock {
  release(): void;
}

/**
 * Makes this process the only owner of a SQLite file. It holds a write transaction on `<file>.lock`
 * beside it. The operating system ends that with the process, also after a crash. Readers and the
 * database file itself are not touched. `undefined` where there is nothing to lock: a database in
 * memory, and PostgreSQL, where processes share.
 *
 * @throws DatabaseError `file-locked` if another process holds it; `configuration` if the file has
 * hard links, or the lock is no empty file
 */
export async function lockDatabaseFile(url: string): Promise<DatabaseFileLock | undefined> {
  const file = databaseFileOf(url);
  if (file === undefined) return undefined;
  refuseHardLinks(file);
  const path = `${file}.lock`;
  refuseForeignLock(path);
  const connection = openSqliteConnection({
    library: await loadSqlite(),
    path,
    label: `Lock file ${path}`,
    readOnly: false,
  });
  try {
    connection.exec("pragma busy_timeout = 0; begin immediate");
  } catch (error) {
    connection.close();
    if (!isDatabaseError(error, "busy")) throw error;
    throw new DatabaseError(
      "file-locked",
      `Another process works on ${file} (it holds ${path}). Stop it, or use a file of its own for each; several processes need PostgreSQL.`,
      { cause: error },
    );
  }
  return { release: connection.close };
}

/**
 * Lock and write-ahead log are beside the name of a file. So a second name has others: two owners
 * would not see each other's rows, and spoil the file.
 */
function refuseHardLinks(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false });
  const links = found?.isFile() === true ? found.nlink : 1;
  if (links <= 1) return;
  throw new DatabaseError(
    "configuration",
    `${file} has ${links} names (hard links), and two programs could own it at once: keep one, and make the others symbolic links`,
  );
}

/**
 * A lock's transaction never commits, so that its file stays empty. Of an empty file, SQLite plays
 * back no journal. One of a foreign lock could delete any file of this user. A file of one byte is
 * empty to SQLite, which makes such files on macOS's FAT volumes.
 */
function refuseForeignLock(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || (found.isFile() && found.size <= 1)) return;
  const fault = found.isFile() ? "is not empty" : "is not a regular file";
  throw new DatabaseError("configuration", `${path} ${fault}, so it is no lock: remove it`);
}

/**
 * Canonical path of a SQLite file, the same for every name of it. `undefined` for a database in
 * memory, and for PostgreSQL.
 */
export function databaseFileOf(url: string): string | undefined {
  const location = parseDatabaseUrl(url);
  if (location.engine !== "sqlite" || location.path === memoryPath) return undefined;
  return canonicalPath(location.path);
}
