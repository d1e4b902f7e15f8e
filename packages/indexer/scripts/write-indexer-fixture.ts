// Writes the database of a release as a fixture for every later one:
//   node --import tsx --conditions=source packages/indexer/scripts/write-indexer-fixture.ts NAME
//
// Run it at the last commit of a schema, before the next migration is added.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dumpDatabase, startPostgres } from "@coinslot/devnet";
import { openKeyStore } from "../src/api/api-stores.ts";
import { readConfiguration } from "../src/configuration.ts";
import { silentLogger } from "../src/logger.ts";
import { createLazyStore } from "../src/store/open-store.ts";
import { fillDatabase, fixtureChain } from "../src/testing/fixture-data.ts";

const [name] = process.argv.slice(2);
if (name === undefined) {
  console.error("Missing argument: the fixture's name, as in 01-first-release.");
  process.exit(2);
}
const folder = join(import.meta.dirname, "../src/store/migrations/fixtures");
const directory = await mkdtemp(join(tmpdir(), "coinslot-fixture-"));
const postgres = await startPostgres();
try {
  for (const engine of ["sqlite", "postgres"] as const) {
    const url = engine === "sqlite" ? `sqlite:${join(directory, "indexer.db")}` : postgres.url;
    await writeFile(join(folder, `${name}.${engine}.sql`), await fill(url));
  }
} finally {
  await postgres.stop();
  await rm(directory, { recursive: true });
}

async function fill(url: string): Promise<string> {
  const { chains } = readConfiguration({ chains: [fixtureChain] });
  const store = createLazyStore({ url, chains, logger: silentLogger, onEvents: () => {} });
  try {
    const opened = await store.opened();
    await fillDatabase(opened);
    const keys = await openKeyStore(opened.database);
    await keys.create({ owner: "fixture", label: undefined, ttlMs: 0, limit: undefined });
    return await dumpDatabase(url);
  } finally {
    await store.close();
  }
}
