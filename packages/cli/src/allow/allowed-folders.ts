import { mkdir, stat, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Terminal } from "../terminal.ts";
import type { FolderSettings } from "./folder-settings.ts";

/** Resolves to whether this user has allowed exactly these settings of this folder. */
export async function isAllowed(env: Terminal["env"], { hash }: FolderSettings): Promise<boolean> {
  try {
    return (await stat(join(stateFolder(env), hash))).isFile();
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
  const folder = stateFolder(env);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, settings.hash), `${settings.path}\n`, { mode: 0o600 });
}

/**
 * In the user's home, never within the folder at hand, which could bring its own allowance. XDG
 * ignores a relative path, and so does this where `HOME` is one, or empty.
 */
export function stateFolder(env: Terminal["env"]): string {
  const { XDG_STATE_HOME: xdg, LOCALAPPDATA: windows } = env;
  const base = [xdg, windows].find((path) => path && isAbsolute(path));
  const home = isAbsolute(homedir()) ? homedir() : userInfo().homedir;
  return join(base ?? join(home, ".local", "state"), "coinslot", "allowed");
}
