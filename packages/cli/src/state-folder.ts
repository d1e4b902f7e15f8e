import { realpathSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { dirname, isAbsolute, join, relative } from "node:path";

/**
 * Folder of what the command keeps for its user: in the home, never within the folder at hand,
 * which could bring its own allowance. Where `HOME` is that folder, as in containers, the home of
 * the user's account counts. Where that is the folder as well, nothing else of the user's is left.
 * XDG ignores a relative path, and so does this where `HOME` is one, or empty.
 *
 * @param at the real path of the folder at hand
 */
export function stateFolder(env: Readonly<Record<string, string | undefined>>, at: string): string {
  const { XDG_STATE_HOME: xdg, LOCALAPPDATA: windows } = env;
  const below = (home: string) => join(home, ".local", "state");
  const bases = [xdg, windows, isAbsolute(homedir()) ? below(homedir()) : undefined];
  const base = bases.find((path) => path && isAbsolute(path) && !leadsThrough(at, path));
  return join(base ?? below(userInfo().homedir), "coinslot");
}

/**
 * True if a path, or a folder above it, is in this folder: it may then decide where the path leads.
 */
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
