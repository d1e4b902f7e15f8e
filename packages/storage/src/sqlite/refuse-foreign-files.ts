import { closeSync, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { DatabaseError } from "../database-error.ts";

/**
 * Looks at a database file, and at those beside it, before SQLite opens them. A folder of unknown
 * origin may hold any of them. Another process must not exchange them meanwhile.
 *
 * @param file canonical path of the database: SQLite keeps the others beside that
 * @throws DatabaseError `configuration` if one is a pipe, a folder or a link. SQLite reads a pipe
 * without an end, and no signal interrupts it. Also, for a connection that may write, if the
 * journal names a super-journal: SQLite deletes the file of that name
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
    if (!isOfOtherKind(file + suffix)) continue;
    const name = suffix === "" ? "it" : `${file}${suffix}`;
    throw new DatabaseError("configuration", `${label}: ${name} is not a regular file`);
  }
  if (!readOnly) refuseSuperJournal(`${file}-journal`, label);
}

function isOfOtherKind(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() === false;
  } catch {
    // SQLite refuses a path that cannot be followed.
    return false;
  }
}

// End of a journal: the name's length and its checksum, of 32 bits each, and eight fixed bytes.
const endBytes = 16;
const magic = Buffer.from("d9d505f920a163d7", "hex");

/** SQLite writes such a name for transactions over several attached databases: none of ours. */
function refuseSuperJournal(journal: string, label: string): void {
  let found: { end: Buffer; links: number };
  try {
    found = readJournal(journal);
  } catch (cause) {
    // The transaction of another process has ended.
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return;
    const message = `${label}: ${journal} cannot be read`;
    throw new DatabaseError("configuration", message, { cause });
  }
  // Of one file with the database, its pages could write the name where it is read later.
  if (found.links > 1) {
    throw new DatabaseError("configuration", `${label}: ${journal} has another name (a hard link)`);
  }
  const { end } = found;
  if (!end.subarray(8).equals(magic) || end.readUInt32BE(0) === 0) return;
  throw new DatabaseError(
    "configuration",
    `${label}: ${journal} names another file, which SQLite would delete. No transaction of this program leaves such a journal: use a copy from a backup`,
  );
}

/** Its last bytes, or zeros where it has not so many, and the number of its names. */
function readJournal(path: string): { end: Buffer; links: number } {
  const end = Buffer.alloc(endBytes);
  const handle = openSync(path, "r");
  try {
    const { size, nlink } = fstatSync(handle);
    readSync(handle, end, 0, endBytes, Math.max(0, size - endBytes));
    return { end, links: nlink };
  } finally {
    closeSync(handle);
  }
}
