import { rename } from "node:fs/promises";
import pg from "pg";
import { withDatabase } from "./read-database.ts";

/** A copy of a database at one moment. */
export interface DatabaseBackup {
  /** Puts the copy in the place of the database, once, under the programs that have it open. */
  restore(): Promise<void>;
}

/**
 * Copies a database. PostgreSQL copies one that has no connections alone: those of its programs are
 * cut for that moment, and for another one by the restore. A SQLite file is copied beside its
 * program, and moved into its place under it.
 *
 * @param url `sqlite:file.db` or `postgres://…`
 */
export async function backUpDatabase(url: string): Promise<DatabaseBackup> {
  if (url.startsWith("sqlite:")) {
    const path = url.slice("sqlite:".length);
    await withDatabase(url, ({ execute }) => execute(`vacuum into '${path}.backup'`));
    return { restore: () => rename(`${path}.backup`, path) };
  }
  const name = new URL(url).pathname.slice(1);
  await withServer(url, async (client) => {
    await closeDatabase(client, name);
    await client.query(`create database ${name}_backup template ${name}`);
    await client.query(`alter database ${name} with allow_connections true`);
  });
  return {
    restore: () =>
      withServer(url, async (client) => {
        await closeDatabase(client, name);
        await client.query(`drop database ${name}`);
        await client.query(`alter database ${name}_backup rename to ${name}`);
      }),
  };
}

/** Cuts all connections, and refuses new ones. */
async function closeDatabase(client: pg.Client, name: string): Promise<void> {
  await client.query(`alter database ${name} with allow_connections false`);
  await client.query(
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1",
    [name],
  );
}

async function withServer(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const server = new URL(url);
  server.pathname = "/postgres";
  const client = new pg.Client({ connectionString: server.href });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
