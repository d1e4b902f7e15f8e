import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { DatabaseError } from "../database-error.ts";

/**
 * Looks at a database file, and at those beside it, before SQLite opens them. A folder of unknown
 * origin may hold any of them. Another process must not exchange them meanwhile.
 *
 * @throws DatabaseError `configuration` if one is a pipe or a folder. SQLite reads a pipe without
 * an end, and no signal interrupts it. Also, for a connection that may write, if the journal names
 * a super-journal: SQLite deletes the file of that name
 */
export function refuseForeignFiles({
  path,
  label,
  readOnly,
}: {
  path: string;
  label: string;
  readOnly: boolean;
}): void {
  // SQLite keeps its other files beside the file itself, also if that is reached by links.
  const file = existsSync(path) ? realpathSync(path) : path;
  for (const suffix of ["", "-journal", "-wal", "-shm"]) {
    if (!isOfOtherKind(file + suffix)) continue;
    const name = suffix === "" ? "it" : `${file}${suffix}`;
    throw new DatabaseError("configuration", `${label}: ${name} is not a regular file`);
  }
  if (!readOnly) refuseSuperJournal(`${file}-journal`, label);
}

function isOfOtherKind(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === false;
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
    `${label}: ${journal} names another file, which SQLite would delete. No transaction of this program leaves such a journal: remove it`,
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
