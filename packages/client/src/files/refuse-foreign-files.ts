import { lstat, open } from "node:fs/promises";
import { PaymentError } from "../payment-error.ts";
import { hasCode } from "./own-file.ts";

/**
 * Looks at the files beside a database before SQLite opens it, and writes into them. A folder of
 * unknown origin may hold any of them. Another process must not exchange them meanwhile.
 *
 * @param path real path of the database
 * @throws PaymentError `channel_file_unavailable` if one is a pipe, a folder or a link. A pipe is
 * read without an end. Another name of a file may be one of this user's other files. Also if the
 * journal names a super-journal: SQLite deletes that file
 */
export async function refuseForeignFiles(path: string): Promise<void> {
  for (const file of [`${path}-journal`, `${path}-wal`, `${path}-shm`]) {
    const found = await lstat(file).catch(() => undefined);
    if (found === undefined || (found.isFile() && found.nlink <= 1)) continue;
    // A log may hold what is not in the database yet.
    const fault = found.isFile()
      ? "has another name (a hard link): put a copy in its place"
      : "is not a regular file: remove it";
    throw new PaymentError("channel_file_unavailable", `${file} ${fault}`);
  }
  const end = await readEnd(`${path}-journal`);
  if (!end.subarray(8).equals(magic) || end.readUInt32BE(0) === 0) return;
  throw new PaymentError(
    "channel_file_unavailable",
    `${path}-journal names another file, which SQLite would delete. No transaction of this client leaves such a journal: use a copy from a backup`,
  );
}

// End of a journal: the name's length and its checksum, of 32 bits each, and eight fixed bytes.
const endBytes = 16;
const magic = Buffer.from("d9d505f920a163d7", "hex");

/** The last bytes of a file, or zeros where it has not so many, or is not there. */
async function readEnd(path: string): Promise<Buffer> {
  const end = Buffer.alloc(endBytes);
  try {
    const handle = await open(path, "r");
    try {
      const { size } = await handle.stat();
      await handle.read(end, 0, endBytes, Math.max(0, size - endBytes));
    } finally {
      await handle.close();
    }
  } catch (error) {
    // The transaction of another process may have ended.
    if (!hasCode(error, "ENOENT")) throw error;
  }
  return end;
}
