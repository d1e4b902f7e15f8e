import { closeSync, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { DatabaseError } from "../database-error.ts";

/**
 * Looks at a database file, and at those beside it, before SQLite opens them. A folder of unknown
 * origin may hold any of them. Another process must not exchange them meanwhile.
 *
 * @param file canonical path of the database: SQLite keeps the others beside that
 * @throws DatabaseError `configuration` if one is a pipe, a folder or a link. SQLite reads a pipe
 * without an end, and no signal interrupts it. It writes into those beside the database, also for a
 * reader: another name of one is another file of this user. Also, for a connection that may write,
 * if the journal names a super-journal: SQLite deletes the file of that name
 */
export function refuseForeignFiles({
  file,
  label,
  readOnly,
}: {
  file: string;
  label: string;
  readOnly: boolean;
}): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) {
    const fault = faultOf(file + suffix, suffix === "");
    if (fault === undefined) continue;
    const name = suffix === "" ? "it" : `${file}${suffix}`;
    throw new DatabaseError("configuration", `${label}: ${name} ${fault}`);
  }
  if (!readOnly) refuseSuperJournal(`${file}-journal`, label);
}

function faultOf(path: string, isDatabase: boolean): string | undefined {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isFile() === false) return "is not a regular file";
    // A log may hold what is not in the database yet.
    const fault = "has another name (a hard link): put a copy in its place";
    return found && found.nlink > 1 && !isDatabase ? fault : undefined;
  } catch {
    // SQLite refuses a path that cannot be followed.
    return undefined;
  }
}

// End of a journal: the name's length and its checksum, of 32 bits each, and eight fixed bytes.
const endBytes = 16;
const magic = Buffer.from("d9d505f920a163d7", "hex");

/** SQLite writes such a name for transactions over several attached databases: none of ours. */
function refuseSuperJournal(journal: string, label: string): void {
  let end: Buffer;
  try {
    end = readEnd(journal);
  } catch (cause) {
    // The transaction of another process has ended.
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return;
    const message = `${label}: ${journal} cannot be read`;
    throw new DatabaseError("configuration", message, { cause });
  }
  if (!end.subarray(8).equals(magic) || end.readUInt32BE(0) === 0) return;
  throw new DatabaseError(
    "configuration",
    `${label}: ${journal} names another file, which SQLite would delete. No transaction of this program leaves such a journal: use a copy from a backup`,
  );
}

/** The last bytes of a file, or zeros where it has not so many. */
function readEnd(path: string): Buffer {
  const end = Buffer.alloc(endBytes);
  const handle = openSync(path, "r");
  try {
    readSync(handle, end, 0, endBytes, Math.max(0, fstatSync(handle).size - endBytes));
  } finally {
    closeSync(handle);
  }
  return end;
}
