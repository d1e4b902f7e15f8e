import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import { onTestFinished } from "vitest";

/**
 * Both engines, for `describe.each`. `createUrl` makes an empty database that goes with the test.
 */
export const engines = [
  { engine: "sqlite", createUrl: createSqliteUrl },
  { engine: "postgres", createUrl: createPostgresUrl },
] as const;

/** For tests whose subject is a chain, a node or a receiver: by day, SQLite stands for both. */
export const enginesByDay = byDay(engines.slice(0, 1), engines);

async function createSqliteUrl(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-indexer-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return `sqlite:${join(directory, "indexer.db")}`;
}

async function createPostgresUrl(): Promise<string> {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  return url;
}
