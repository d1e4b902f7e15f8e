import { execFile } from "node:child_process";
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/**
 * Files of `init`, its backups, and the payments that `pay` keeps when their outcome is unclear.
 */
const patterns = [".env", ".env.backup-*", "coinslot-payment-*.json"];

/**
 * Makes git ignore a folder's files with secrets.
 *
 * @returns `tracked` when git has the file already, which no .gitignore changes
 */
export async function ignoreByGit(folder: string): Promise<"covered" | "added" | "tracked"> {
  const isTracked = (await ask(folder, ["ls-files", "--error-unmatch", ".env"])) === 0;
  const missing: string[] = [];
  for (const pattern of patterns) {
    if (!(await isIgnored(folder, pattern))) missing.push(pattern);
  }
  if (missing.length > 0) await append(folder, missing);
  if (isTracked) return "tracked";
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
  const lines = (await readIgnored(folder)).split(/\r?\n/).map((line) => line.trim());
  return lines.includes(pattern) || lines.includes(`/${pattern}`);
}

async function append(folder: string, lines: readonly string[]): Promise<void> {
  const before = await readIgnored(folder);
  const separator = before === "" || before.endsWith("\n") ? "" : "\n";
  await appendFile(join(folder, ".gitignore"), `${separator}${lines.join("\n")}\n`);
}

async function readIgnored(folder: string): Promise<string> {
  try {
    return await readFile(join(folder, ".gitignore"), "utf8");
  } catch {
    return "";
  }
}

/** Exit code of git; `undefined` where there is no git. */
async function ask(folder: string, args: readonly string[]): Promise<number | undefined> {
  try {
    await run("git", ["-C", folder, ...args]);
    return 0;
  } catch (error) {
    return error instanceof Error && "code" in error && typeof error.code === "number"
      ? error.code
      : undefined;
  }
}
