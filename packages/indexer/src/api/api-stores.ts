import {
  createDatabaseHitCounter,
  createMemoryHitCounter,
  type Database,
  type HitCounter,
  migrate,
  requireMigrated,
} from "@coinslot/storage";
import type { IndexerSchema } from "../store/schema.ts";
import { type IndexerWebhooks, indexerWebhooks } from "../webhooks/indexer-webhooks.ts";
import { apiMigrations, hitsTable } from "./api-migrations.ts";
import { createKeyStore, type KeyStore } from "./keys/key-store.ts";

/** Stores of the API. */
export interface ApiStores {
  keys: KeyStore;
  counter: HitCounter;
  webhooks: IndexerWebhooks;
}

/**
 * Opens the API's tables beside those of the transfers. Requests are counted in PostgreSQL where
 * processes may share it. They are counted in memory beside SQLite, which has one process.
 */
export async function openApiStores(options: {
  database: Database<IndexerSchema>;
  now: () => number;
  onBackgroundError: (error: unknown) => void;
}): Promise<ApiStores> {
  const { database, now, onBackgroundError } = options;
  const keys = await openKeyStore(database);
  const counter =
    database.engine === "postgres"
      ? createDatabaseHitCounter({ database, table: hitsTable, now, onBackgroundError })
      : createMemoryHitCounter({ now });
  return { keys, counter, webhooks: indexerWebhooks(database) };
}

/**
 * Opens the keys alone, for the command line. Creates the tables where they are missing, but not
 * with `readOnly`.
 */
export async function openKeyStore<Schema>(
  database: Database<Schema>,
  { readOnly = false }: { readOnly?: boolean } = {},
): Promise<KeyStore> {
  await (readOnly ? requireMigrated : migrate)(database, apiMigrations);
  return createKeyStore(database);
}
