import { type FileHandle, open } from "node:fs/promises";
import { createSingleFlight } from "@coinslot/concurrency";
import { DatabaseError } from "../database-error.ts";
import { canonicalPath } from "./canonical-path.ts";

/** Brings SQLite's write-ahead log onto the disk. */
export interface LogSync {
  /**
   * Resolves once all earlier commits are on the disk. Rejects with a `DatabaseError` of kind
   * `connection-lost`, and from then on always. A disk that has failed once is not trusted again.
   */
  sync(): Promise<void>;
  /** Throws the failure of the disk, if there was one. */
  verify(): void;
  close(): Promise<void>;
}

/**
 * The sync that SQLite does itself at each commit under `synchronous=FULL`, beside the event loop
 * instead of inside it. A commit has written its frames to the log, and is durable when the log is.
 * The log is one file that only grows until it is moved into the database. Data on the disk
 * therefore has everything before it there too.
 *
 * The log is opened a second time. SQLite holds its locks on other files, so closing this one gives
 * none of them up.
 */
export function createLogSync(options: { path: string; label: string }): LogSync {
  // SQLite keeps the log beside the file itself, also if that is reached by links.
  const path = `${canonicalPath(options.path)}-wal`;
  let handle: FileHandle | undefined;
  let failure: DatabaseError | undefined;

  // A sync under way may have begun before a caller's commit: its caller needs the next one.
  const syncing = createSingleFlight(async () => {
    if (failure !== undefined) throw failure;
    try {
      handle ??= await open(path, "r+");
      await handle.datasync();
    } catch (cause) {
      const message = `${options.label}: unknown whether the last commits are on the disk`;
      failure = new DatabaseError("connection-lost", message, { cause });
      throw failure;
    }
  });

  return {
    sync: syncing.next,
    verify() {
      if (failure !== undefined) throw failure;
    },
    close: async () => handle?.close(),
  };
}
