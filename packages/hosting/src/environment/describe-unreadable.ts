import { statSync } from "node:fs";

/**
 * Reason why a file cannot be read, for its owner. A container's secret keeps its owner and mode
 * from the host, while the program runs as another user.
 *
 * @param uid the user of this process
 */
export function describeUnreadable(
  path: string,
  error: unknown,
  uid: number | undefined = process.getuid?.(),
): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return `${path} cannot be read: the file does not exist`;
  if (code === "EISDIR") return `${path} cannot be read: it is a folder`;
  if ((code !== "EACCES" && code !== "EPERM") || uid === undefined) return `${path} cannot be read`;
  return `${path} cannot be read: user ${uid} may not read it${ownerOf(path)}. Make user ${uid} its owner: chown ${uid} <file>`;
}

/** Owner and mode of a file. Empty where its folder is inaccessible too. */
function ownerOf(path: string): string {
  try {
    const { uid, mode } = statSync(path);
    return ` (it belongs to user ${uid}, mode ${(mode & 0o777).toString(8).padStart(4, "0")})`;
  } catch {
    return "";
  }
}
