import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { readRegularFile } from "@coinslot/hosting/environment";

const run = promisify(execFile);
/**
 * Files of `init`, its backups, and the payments that `pay` keeps when their outcome is unclear.
 */
const patterns = [".env", ".env.backup-*", "coinslot-payment-*.json"];

/** Longest .gitignore that is read. */
const maxIgnoredBytes = 1_048_576;

/**
 * Makes git ignore a folder's files with secrets.
 *
 * @returns `tracked` when git has the file already, which no .gitignore changes; `unwritable` when
 *   the .gitignore cannot be written, or is a link
 */
export async function ignoreByGit(
  folder: string,
): Promise<"covered" | "added" | "tracked" | "unwritable"> {
  const isTracked = (await ask(folder, ["ls-files", "--error-unmatch", ".env"])) === 0;
  const missing: string[] = [];
  for (const pattern of patterns) {
    if (!(await isIgnored(folder, pattern))) missing.push(pattern);
  }
  const isWritten = missing.length === 0 || (await append(folder, missing));
  if (isTracked) return "tracked";
  if (!isWritten) return "unwritable";
  return missing.length > 0 ? "added" : "covered";
}

/**
 * Git decides, with the .gitignore of every folder above. Without a repository, the file is read.
 */
async function isIgnored(folder: string, pattern: string): Promise<boolean> {
  const example = pattern.replace("*", "example");
  const answer = await ask(folder, ["check-ignore", "--quiet", "--no-index", example]);
  if (answer === 0) return true;
  if (answer === 1) return false;
  const lines = readIgnored(folder)
    .split(/\r?\n/)
    .map((line) => line.trim());
  return lines.includes(pattern) || lines.includes(`/${pattern}`);
}

/**
 * Resolves to whether the lines are in the file. A folder may come from a stranger: a link in it
 * would lead to any file of this user. Git reads no rules through a symbolic one.
 */
async function append(folder: string, lines: readonly string[]): Promise<boolean> {
  const before = readIgnored(folder);
  const separator = before === "" || before.endsWith("\n") ? "" : "\n";
  const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const flags = O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK;
  try {
    const file = await open(join(folder, ".gitignore"), flags);
    try {
      if ((await file.stat()).nlink > 1) return false;
      await file.writeFile(`${separator}${lines.join("\n")}\n`);
    } finally {
      await file.close();
    }
    return true;
  } catch {
    return false;
  }
}

function readIgnored(folder: string): string {
  try {
    return readRegularFile(join(folder, ".gitignore"), maxIgnoredBytes);
  } catch {
    return "";
  }
}

/**
 * Exit code of git; `undefined` where there is no git. A repository's own settings may name
 * programs, for reading its index and for fetching missing objects. Git runs neither here.
 */
async function ask(folder: string, args: readonly string[]): Promise<number | undefined> {
  try {
    await run("git", ["-c", "core.fsmonitor=false", "-C", folder, ...args], {
      // Older releases know the second alone. It names no transport, so that all are refused.
      env: { ...process.env, GIT_NO_LAZY_FETCH: "1", GIT_ALLOW_PROTOCOL: "none" },
    });
    return 0;
  } catch (error) {
    return error instanceof Error && "code" in error && typeof error.code === "number"
      ? error.code
      : undefined;
  }
}
