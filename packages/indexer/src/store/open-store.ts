import { type Database, migrate, openDatabase } from "@coinslot/storage";
import type { ChainConfiguration } from "../configuration.ts";
import type { IndexerLogger } from "../logger.ts";
import { eventsChannel } from "./events.ts";
import { knowTokens } from "./know-tokens.ts";
import type { KnownToken } from "./known-token.ts";
import { indexerMigrations } from "./migrations/indexer-migrations.ts";
import type { IndexerSchema } from "./schema.ts";

/** The database with its tables up to date, and the configured tokens in it. */
export interface Store {
  database: Database<IndexerSchema>;
  tokens: readonly KnownToken[];
}

export interface StoreOptions {
  /** The database's URL. */
  url: string;
  chains: readonly ChainConfiguration[];
  logger: IndexerLogger;
  /** Called when a process has written new events. */
  onEvents: () => void;
}

/** A store that is opened on first use. */
export interface LazyStore {
  /** Rejects with a `DatabaseError` if the database is away; the next call tries again. */
  opened(): Promise<Store>;
  /** From then on it is not opened again. */
  close(): Promise<void>;
}

export function createLazyStore(options: StoreOptions): LazyStore {
  let opening: Promise<Store> | undefined;
  let isClosed = false;

  return {
    opened() {
      if (isClosed) return Promise.reject(new Error("The indexer is closed"));
      opening ??= openStore(options).catch((error: unknown) => {
        opening = undefined;
        throw error;
      });
      return opening;
    },
    async close() {
      isClosed = true;
      const store = await opening?.catch(() => undefined);
      await store?.database.close();
    },
  };
}

async function openStore({ url, chains, logger, onEvents }: StoreOptions): Promise<Store> {
  const database = await openDatabase<IndexerSchema>({
    url,
    // A crash of the machine may lose the end of the log; it is read from the chain again.
    durable: false,
    applicationName: "coinslot-indexer",
    onBackgroundError: (error) => logger.warn({ error }, "The database complained"),
  });
  try {
    await migrate(database, indexerMigrations);
    const tokens: KnownToken[] = [];
    for (const chain of chains) tokens.push(...(await knowTokens(database, chain)));
    await database.listen(eventsChannel, onEvents);
    return { database, tokens };
  } catch (error) {
    await database.close();
    throw error;
  }
}
