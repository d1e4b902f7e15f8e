import { chmod, lstat, rename, writeFile } from "node:fs/promises";
import { UsageError } from "../exit-code.ts";

/** Read and write for the owner alone. */
const ownerOnly = 0o600;

/**
 * Writes a file of secrets. An existing one is never overwritten: with `isReplacing` it is moved
 * aside first.
 *
 * @returns the backup's path, where there was something to keep
 * @throws UsageError when there is a file already
 */
export async function writeEnvFile(options: {
  file: string;
  text: string;
  isReplacing: boolean;
  now?: Date;
}): Promise<string | undefined> {
  const { file, text, isReplacing, now = new Date() } = options;
  const backup = isReplacing ? await moveAside(file, now) : undefined;
  try {
    // Exclusive creation: another process could write one between the check and this write.
    await writeFile(file, text, { flag: "wx", mode: ownerOnly });
  } catch (cause) {
    if (!hasCode(cause, "EEXIST")) throw cause;
    throw new UsageError(
      "There is an .env file here already, and it may hold seeds that are needed. With --force it is moved aside and kept.",
      { cause },
    );
  }
  return backup;
}

async function moveAside(file: string, now: Date): Promise<string | undefined> {
  const stamp = now.toISOString().replaceAll(/[:.]/g, "-");
  const backup = `${file}.backup-${stamp}`;
  try {
    await rename(file, backup);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
  // A folder may come from a stranger: the mode of a link is that of another file of this user.
  if ((await lstat(backup)).isFile()) await chmod(backup, ownerOnly);
  return backup;
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
