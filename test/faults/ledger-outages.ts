import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { chown, mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Database, withDatabase } from "@coinslot/devnet";
import type { WorkerProcess } from "./worker-process.ts";

/** A time in which a ledger takes no writes. */
export interface LedgerOutage {
  begin(): Promise<void>;
  end(): Promise<void>;
}

const execute = promisify(execFile);

/**
 * A full disk beneath a SQLite file: the kernel refuses the process to make any file longer than
 * the write-ahead log is now, as a quota does.
 */
export function fullDisk(seller: WorkerProcess, ledger: string): LedgerOutage {
  const limit = (bytes: string) =>
    execute("prlimit", ["--pid", String(seller.pid), `--fsize=${bytes}:`]);
  return {
    async begin() {
      await limit(String(statSync(`${ledger.slice("sqlite:".length)}-wal`).size));
    },
    async end() {
      await limit("unlimited");
    },
  };
}

/** A PostgreSQL database that its administrator has made read-only. Connections begin anew. */
export function readOnlyDatabase(ledger: string): LedgerOutage {
  const name = new URL(ledger).pathname.slice(1);
  const setReadOnly = (isReadOnly: boolean) =>
    withDatabase(ledger, async ({ execute }) => {
      await execute("set default_transaction_read_only = off");
      await execute(
        `alter database ${name} set default_transaction_read_only = ${isReadOnly ? "on" : "off"}`,
      );
      await execute(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`);
    });
  return { begin: () => setReadOnly(true), end: () => setReadOnly(false) };
}

/** True where a test may mount a file system. */
export const mayMount = process.platform === "linux" && process.getuid?.() === 0;

/**
 * A PostgreSQL database in a file system of its own, which can be filled. The log of the server is
 * elsewhere: without space for that, the server ends, and is away.
 */
export async function smallDisk(
  database: Database,
): Promise<LedgerOutage & { unmount(): Promise<void> }> {
  const disk = await mkdtemp(join(tmpdir(), "coinslot-disk-"));
  const filler = join(disk, "filler");
  const name = new URL(database.url).pathname.slice(1);
  const server = new URL(database.url);
  server.pathname = "/postgres";
  const administer = (statement: string) =>
    withDatabase(server.href, ({ execute }) => execute(statement));
  await execute("mount", ["-t", "tmpfs", "-o", "size=48m,mode=0755", "tmpfs", disk]);
  const place = join(disk, "tablespace");
  await mkdir(place);
  const [setting] = await withDatabase(server.href, ({ read }) => read("show data_directory"));
  const { uid, gid } = await stat(String(setting?.data_directory));
  await chown(place, uid, gid);
  await administer(`create tablespace ${name}_disk location '${place}'`);
  await administer(`alter database ${name} set tablespace ${name}_disk`);
  return {
    async begin() {
      // Ends with an error, once no page is left.
      await execute("dd", ["if=/dev/zero", `of=${filler}`, "bs=4k"]).catch(() => undefined);
    },
    end: () => rm(filler),
    async unmount() {
      await database.drop();
      await administer(`drop tablespace ${name}_disk`);
      await execute("umount", [disk]);
      await rm(disk, { recursive: true });
    },
  };
}
