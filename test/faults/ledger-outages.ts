import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { promisify } from "node:util";
import { withDatabase } from "@coinslot/devnet";
import type { WorkerProcess } from "./worker-process.ts";

/** A time in which a ledger takes no writes. */
export interface LedgerOutage {
  begin(): Promise<void>;
  end(): Promise<void>;
}

const execute = promisify(execFile);

/**
 * A full disk beneath a SQLite file: the kernel refuses the process to make any file longer than the
 * write-ahead log is now, as a quota does.
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
