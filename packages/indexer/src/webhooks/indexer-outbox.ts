import { createWriter, type Database, type OutboxContext } from "@coinslot/storage";
import { outboxTables } from "../store/migrations/add-webhooks.ts";
import type { IndexerSchema } from "../store/schema.ts";

/**
 * The outbox of an indexer's database, for its delivery.
 *
 * Transfers are written without waiting for the disk, since they can be read again. A webhook
 * cannot be taken back. So each claim waits for the disk, and everything that was committed before
 * it is there, too.
 */
export function indexerOutbox(database: Database<IndexerSchema>): OutboxContext<IndexerSchema> {
  const { kysely: db, dialect } = database;
  const writer = createWriter(database);
  return {
    db,
    dialect,
    write: (work) => writer.write(work, { durability: "disk" }),
    tables: outboxTables,
  };
}
