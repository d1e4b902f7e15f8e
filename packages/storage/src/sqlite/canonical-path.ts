import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";

/** Linux's own limit. */
const maxLinks = 40;

/**
 * Absolute path of a file, through any links and relative paths, also before the file exists. It is
 * the file that the operating system opens. There, `..` behind a link is the folder above its
 * target. To `resolve` and `realpathSync` it is the folder above the link.
 */
export function canonicalPath(path: string): string {
  let current = path;
  for (let links = 0; links < maxLinks; links++) {
    if (existsSync(current)) return realpathSync.native(current);
    const directory = dirname(current);
    if (!existsSync(directory)) break;
    current = join(realpathSync.native(directory), basename(current));
    const isLink = lstatSync(current, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
    if (!isLink) break;
    const target = readlinkSync(current);
    current = isAbsolute(target) ? target : `${dirname(current)}/${target}`;
  }
  return resolve(current);
}
