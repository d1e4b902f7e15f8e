import type { Dialect } from "@coinslot/storage";
import { type Insertable, sql, type Transaction } from "kysely";
import type { IndexerSchema } from "./schema.ts";

/** Notification channel of new events, for all processes. */
export const eventsChannel = "coinslot_indexer_events";
/** Number of events that are kept for readers who were away. */
const eventsKept = 100_000;

export type EventInsert = Omit<Insertable<IndexerSchema["indexer_events"]>, "id">;

/**
 * Writes events in the order given. Their ids grow in the order of commits, since the holder of the
 * writer lease writes one transaction at a time. So a reader who has seen an id has seen all below
 * it.
 */
export async function announce(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  events: readonly EventInsert[],
): Promise<void> {
  if (events.length === 0) return;
  await dialect.insertMany(transaction, "indexer_events", events);
  await sql`
    delete from indexer_events where id <= (select max(id) from indexer_events) - ${eventsKept}
  `.execute(transaction);
}
