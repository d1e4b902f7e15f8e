import { realpathSync } from "node:fs";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { dirname, isAbsolute, join, relative } from "node:path";
import type { Terminal } from "../terminal.ts";
import type { FolderSettings } from "./folder-settings.ts";

/** Resolves to whether this user has allowed exactly these settings of this folder. */
export async function isAllowed(
  env: Terminal["env"],
  { hash, path }: FolderSettings,
): Promise<boolean> {
  try {
    return (await stat(join(stateFolder(env, dirname(path)), hash))).isFile();
  } catch {
    return false;
  }
}

/**
 * Records that this user allows these settings. One file for each, so that two processes need no
 * lock.
 *
 * @throws when it cannot be written
 */
export async function allow(env: Terminal["env"], settings: FolderSettings): Promise<void> {
  const folder = stateFolder(env, dirname(settings.path));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, settings.hash), `${settings.path}\n`, { mode: 0o600 });
}

/**
 * In the user's home, never within the folder at hand, which could bring its own allowance. Where
 * `HOME` is that folder, as in containers, the home of the user's account counts. Where that is the
 * folder as well, nothing else of the user's is left. XDG ignores a relative path, and so does this
 * where `HOME` is one, or empty.
 *
 * @param at the real path of the folder at hand
 */
export function stateFolder(env: Terminal["env"], at: string): string {
  const { XDG_STATE_HOME: xdg, LOCALAPPDATA: windows } = env;
  const below = (home: string) => join(home, ".local", "state");
  const bases = [xdg, windows, isAbsolute(homedir()) ? below(homedir()) : undefined];
  const base = bases.find((path) => path && isAbsolute(path) && !leadsThrough(at, path));
  return join(base ?? below(userInfo().homedir), "coinslot", "allowed");
}

/** True if a path, or a folder above it, is in this folder: it may then decide where the path leads. */
function leadsThrough(at: string, path: string): boolean {
  for (let each = path; ; each = dirname(each)) {
    const real = realPath(each);
    if (real !== undefined && isWithin(at, real)) return true;
    if (dirname(each) === each) return false;
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return !isAbsolute(way) && way !== ".." && !/^\.\.[\\/]/.test(way);
}
