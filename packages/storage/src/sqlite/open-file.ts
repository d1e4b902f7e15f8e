import { realpath, rename, rm, stat } from "node:fs/promises";
import { CompiledQuery } from "kysely";
import { DatabaseError } from "../database-error.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

/** The file that connections have open, compared with the one that its path names. */
export interface OpenFile {
  /**
   * Rejects with a `DatabaseError` of kind `file-replaced` if the path names another file, or none,
   * or its log does. Without the log, the next start would lack all that is not in the file yet.
   */
  verify(): Promise<void>;
  /**
   * Call with the last connection. Where the file has been replaced, SQLite leaves its write-ahead
   * log beside the new one. The next program would write the log's pages into that. So the log is
   * emptied into the file that is open, wherever it is now.
   */
  emptyLog(connection: SqliteConnection): Promise<void>;
  /** Call once all connections are closed: a log that could not be emptied gets another name. */
  setLogAside(): Promise<void>;
}

/**
 * Remembers the file that has just been opened. A process that has a file open goes on with it
 * after `mv` has put another in its place. All that it writes is lost with its end.
 */
export async function watchOpenFile({
  path,
  label,
}: {
  path: string;
  label: string;
}): Promise<OpenFile> {
  // SQLite keeps the log beside the file itself, also if that is reached by links.
  const file = await realpath(path);
  const opened = await identityOf(file);
  let log = await identityOf(`${file}-wal`);
  const index = await identityOf(`${file}-shm`);
  let emptied = false;

  return {
    async verify() {
      const found = await identityOf(path);
      if (found === opened) {
        // SQLite makes it with the first write, and keeps it until the last connection closes.
        const current = await identityOf(`${file}-wal`);
        log ??= current;
        if (current === log) return;
        const message = `${label}: its write-ahead log was moved or deleted while it was open`;
        throw new DatabaseError("file-replaced", message);
      }
      const change = found === undefined ? "was moved or deleted" : "was replaced by another one";
      throw new DatabaseError("file-replaced", `${label} ${change} while it was open`);
    },
    async emptyLog(connection) {
      const isSame = (await identityOf(file)) === opened;
      if (isSame && (log === undefined || (await identityOf(`${file}-wal`)) === log)) return;
      // A reader of another program, or a full disk, may prevent it.
      emptied = connection.query<{ busy: number }>(emptyIntoFile).rows[0]?.busy === 0;
    },
    async setLogAside() {
      if ((await identityOf(file)) === opened) return;
      if (log !== undefined && (await identityOf(`${file}-wal`)) === log) {
        if (emptied) await rm(`${file}-wal`);
        else await rename(`${file}-wal`, `${file}-wal.replaced-${Date.now()}`);
      }
      // It is made from the log.
      if (index !== undefined && (await identityOf(`${file}-shm`)) === index) {
        await rm(`${file}-shm`);
      }
    },
  };
}

const emptyIntoFile = CompiledQuery.raw("pragma wal_checkpoint(truncate)");

/** Device and number of the file that a path names; `undefined`: there is none. */
async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
