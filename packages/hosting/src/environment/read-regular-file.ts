import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/**
 * The text of a regular file of at most 64 KiB, or another bound. For files that a stranger may
 * have made: reading a pipe may block, and a device may never end.
 *
 * @throws Error for any other file, and where it cannot be read
 */
export function readRegularFile(path: string, maxBytes = 65_536): string {
  // Windows has no such flag, and no pipes among its files.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    if (!fstatSync(file).isFile()) throw new Error("It is not a regular file");
    const bytes = Buffer.alloc(maxBytes + 1);
    let length = 0;
    while (length <= maxBytes) {
      const count = readSync(file, bytes, length, bytes.length - length, null);
      if (count === 0) return bytes.toString("utf8", 0, length);
      length += count;
    }
    throw new Error(`It is larger than ${maxBytes} bytes`);
  } finally {
    closeSync(file);
  }
}
