import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase } from "@coinslot/devnet";
import { onTestFinished } from "vitest";
import { type Database, type DatabaseOptions, openDatabase } from "../database.ts";

/**
 * Both engines, for `describe.each`. `createUrl` makes an empty database that goes with the test.
 */
export const engines = [
  { engine: "sqlite", createUrl: createSqliteUrl },
  { engine: "postgres", createUrl: createPostgresUrl },
] as const;

/** The URL of a SQLite file that does not exist yet, in a directory that goes with the test. */
export async function createSqliteUrl(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-storage-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return `sqlite:${join(directory, "test.db")}`;
}

/** The URL of an empty PostgreSQL database that goes with the test. */
export async function createPostgresUrl(): Promise<string> {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return url;
}

/** Opens a database that is closed when the test ends. */
export async function openForTest<Schema>(options: DatabaseOptions): Promise<Database<Schema>> {
  const database = await openDatabase<Schema>(options);
  onTestFinished(() => database.close());
  return database;
}
