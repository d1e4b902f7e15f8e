import { open, readlink, realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/**
 * The real path of a file that may not exist yet: a symbolic link is another name of the same file.
 */
export async function followLinks(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    // The read reports every other fault.
    if (!hasCode(error, "ENOENT")) return path;
  }
  // The file is not there yet; a link to it may be.
  const target = await readlink(path).catch(() => undefined);
  return target === undefined ? path : followLinks(resolve(await realpath(dirname(path)), target));
}

/** Flushes the names of a folder to the disk. */
export async function syncDirectory(path: string): Promise<void> {
  // Windows has no such call, and journals renames.
  if (process.platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Returns whether an error of the file system has this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
