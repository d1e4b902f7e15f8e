import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase } from "@coinslot/devnet";
import { openLedger } from "../ledger/open-ledger.ts";

type Engine = "sqlite" | "postgres";

/**
 * Ledgers of the newest schema, made once in each worker of the test runner. Migrating anew takes
 * four times as long as a copy on PostgreSQL, and forty times on SQLite.
 */
const made: { sqlite?: Promise<Buffer>; postgres?: Promise<string> } = {};

/** A ledger without rows, of the newest schema. */
export async function copyMigratedLedger(
  engine: Engine,
): Promise<{ url: string; drop(): Promise<void> }> {
  if (engine === "postgres") {
    made.postgres ??= migrateDatabase();
    return createTestDatabase({ template: await made.postgres });
  }
  made.sqlite ??= migrateFile();
  const ledger = await createLedgerFile();
  await writeFile(ledger.file, await made.sqlite);
  return ledger;
}

/**
 * The place of a SQLite ledger that does not exist yet. A command that was interrupted may look at
 * it once more while it is removed.
 */
export async function createLedgerFile() {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-ledger-"));
  const file = join(directory, "ledger.db");
  return {
    file,
    url: `sqlite:${file}`,
    drop: () => rm(directory, { recursive: true, maxRetries: 10 }),
  };
}

/** The URL of a database that ends with the server of the test run. */
async function migrateDatabase(): Promise<string> {
  const { url } = await createTestDatabase();
  await migrateTo(url);
  return url;
}

async function migrateFile(): Promise<Buffer> {
  const { file, url, drop } = await createLedgerFile();
  await migrateTo(url);
  const bytes = await readFile(file);
  await drop();
  return bytes;
}

async function migrateTo(url: string): Promise<void> {
  const { close } = await openLedger({ url, processId: "template" });
  await close();
}
