import { lstat, readdir, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Io } from "../io.ts";

/** Longest file: one with the longest payable body, of 4 MiB, has 5.6 MiB. */
export const maxKeptBytes = 8 * 1024 * 1024;

const keptName = /^coinslot-payment-[0-9a-f]{16}\.json$/;

/** The name under which a payment is kept, and searched. */
export function keptNameOf({ nonce }: { nonce: string }): string {
  return `coinslot-payment-${nonce.slice(2, 18)}.json`;
}

/**
 * Files that may hold a kept payment of this user. They are in the current folder, or in its
 * substitute when that is read-only. Other users may plant files there, and as many as they like:
 * none of theirs is read. Nor is a named pipe, which would block the read without end.
 */
export async function searchKept({ folder, temporaryFolder, userId }: Io): Promise<string[]> {
  const folders = [...new Set([folder, temporaryFolder])];
  const found = await Promise.all(
    folders.map(async (each) => {
      const names = await readdir(each).catch(() => []);
      return names.filter((name) => keptName.test(name)).map((name) => join(each, name));
    }),
  );
  const files = found.flat();
  const areOwn = await Promise.all(files.map((file) => isOwn(file, userId)));
  return files.filter((_, index) => areOwn[index]);
}

/** Resolves to whether a search finds this file, also where a link leads to its folder. */
export async function isSearched(file: string, io: Io): Promise<boolean> {
  const resolved = (path: string) => realpath(path).catch(() => path);
  const found = (await searchKept(io)).filter((each) => basename(each) === basename(file));
  return (await Promise.all(found.map(resolved))).includes(await resolved(file));
}

async function isOwn(file: string, userId: number | undefined): Promise<boolean> {
  const stats = await lstat(file).catch(() => undefined);
  if (!stats?.isFile() || stats.size > maxKeptBytes) return false;
  return userId === undefined || stats.uid === userId;
}
