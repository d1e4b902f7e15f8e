import { mkdir, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stateFolder } from "../state-folder.ts";
import type { Terminal } from "../terminal.ts";
import type { FolderSettings } from "./folder-settings.ts";

/** Resolves to whether this user has allowed exactly these settings of this folder. */
export async function isAllowed(
  env: Terminal["env"],
  { hash, path }: FolderSettings,
): Promise<boolean> {
  try {
    return (await stat(join(allowedFolder(env, path), hash))).isFile();
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
  const folder = allowedFolder(env, settings.path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, settings.hash), `${settings.path}\n`, { mode: 0o600 });
}

function allowedFolder(env: Terminal["env"], file: string): string {
  return join(stateFolder(env, dirname(file)), "allowed");
}
