import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { guardedCommand } from "./guarded-command.ts";

/** A file system in memory, on Linux. */
const memory = "/dev/shm";
/** Free memory below which a run keeps its files on the disk. A whole run takes about 1 GiB. */
const minFreeBytes = 4 * 1024 ** 3;

/**
 * Global setup of the test runner: temporary files of the run in memory, where there is room. A
 * database still asks for each commit to be written, and no test waits for the disk: writes outlive
 * a killed process in memory too. The directory goes with the run, however that ends.
 *
 * @returns the teardown
 */
// biome-ignore lint/style/noDefaultExport: the test runner calls the default export.
export default async function setup(): Promise<() => Promise<void>> {
  const before = process.env.TMPDIR;
  // Each project of the runner calls this.
  const isDone = before?.startsWith(`${memory}/`) === true;
  const directory = isDone ? undefined : await createDirectory();
  if (directory === undefined) return async () => undefined;
  const stopGuard = guard(directory);
  process.env.TMPDIR = directory;

  return async () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    await stopGuard();
    await rm(directory, { recursive: true, force: true });
  };
}

/** Undefined where memory is short, or programs may not be started from there. */
async function createDirectory(): Promise<string | undefined> {
  if (process.availableMemory() < minFreeBytes) return undefined;
  try {
    const { bavail, bsize } = await statfs(memory);
    if (bavail * bsize < minFreeBytes) return undefined;
    const directory = await mkdtemp(join(memory, "coinslot-"));
    // PostgreSQL runs as another user where this process is root.
    await chmod(directory, 0o711);
    if (await canRunFrom(directory)) return directory;
    await rm(directory, { recursive: true });
    return undefined;
  } catch {
    return undefined;
  }
}

async function canRunFrom(directory: string): Promise<boolean> {
  const program = join(directory, "program");
  await writeFile(program, "#!/bin/sh\n", { mode: 0o700 });
  try {
    await promisify(execFile)(program);
    return true;
  } catch {
    return false;
  } finally {
    await rm(program);
  }
}

/** Removes the directory when this process is killed. Returns the guard's end. */
function guard(directory: string): () => Promise<void> {
  const idle = { file: "/bin/sleep", args: ["2147483647"] };
  const { file, args } = guardedCommand({ ...idle, signal: "KILL", directory });
  const stdio: ["pipe", "ignore", "ignore"] = ["pipe", "ignore", "ignore"];
  const child = spawn(file, args, { detached: true, stdio });
  return async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
}
