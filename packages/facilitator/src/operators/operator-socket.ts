import { createHash } from "node:crypto";
import { relative } from "node:path";
import { databaseFileOf } from "@coinslot/storage";

/**
 * Address on which the process that holds a SQLite ledger serves its operator: a Unix socket beside
 * the file, or a named pipe on Windows. `undefined` for a ledger without a file: processes share a
 * PostgreSQL ledger, and every command writes to it by itself.
 */
export function operatorSocketOf(url: string): string | undefined {
  const file = databaseFileOf(url);
  if (file === undefined) return undefined;
  if (process.platform === "win32") {
    return `\\\\.\\pipe\\coinslot-${createHash("sha256").update(file).digest("hex")}`;
  }
  return `${file}.socket`;
}

/** Bytes of a socket's path, without the final zero, on the systems that take the fewest. */
export const maxPathBytes = 103;

/**
 * A form of the address that the system takes: a long path is shorter from the current folder.
 *
 * @throws RangeError where it is not
 */
export function shortenSocket(path: string): string {
  if (Buffer.byteLength(path) <= maxPathBytes || process.platform === "win32") return path;
  const near = relative(process.cwd(), path);
  if (Buffer.byteLength(near) <= maxPathBytes) return near;
  throw new RangeError(
    `The path of the operator's socket has more than ${maxPathBytes} bytes: ${path}`,
  );
}
