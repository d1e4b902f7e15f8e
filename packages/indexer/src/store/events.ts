import type { Dialect } from "@coinslot/storage";
import { type Insertable, sql, type Transaction } from "kysely";
import { tellEvents } from "../webhooks/tell-events.ts";
import type { IndexerSchema } from "./schema.ts";

/** Notification channel of new events, for all processes. */
export const eventsChannel = "coinslot_indexer_events";
/** Number of events that are kept for readers who were away. */
const eventsKept = 100_000;

export type EventInsert = Omit<Insertable<IndexerSchema["indexer_events"]>, "id">;

/**
 * Writes events in the order given. Their ids grow in the order of commits: the holder of the
 * writer lease writes one transaction at a time. So a reader who has seen an id has seen all below
 * it. Webhooks about them are written with them.
 */
export async function announce(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  events: readonly EventInsert[],
): Promise<void> {
  if (events.length === 0) return;
  await dialect.insertMany(transaction, "indexer_events", events);
  await tellEvents(transaction, dialect);
  await sql`
    delete from indexer_events where id <= (select max(id) from indexer_events) - ${eventsKept}
  `.execute(transaction);
}

/**
 * Forgets all events, so that every reader finds a gap, and reads the history again. The ids jump
 * by one: the event after each reader's place is missing. The last stays, and is of no token.
 */
export async function forgetEvents(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
): Promise<void> {
  const nothing = new Uint8Array();
  const blank = {
    kind: "retraction" as const,
    token_id: 0,
    position: 0,
    transaction_index: 0,
    transfer_index: 0,
    transaction_hash: nothing,
    from_address: nothing,
    to_address: nothing,
    amount: dialect.amount.encode(0n),
    block_hash: nothing,
    timestamp_ms: 0,
  };
  await dialect.insertMany(transaction, "indexer_events", [blank, blank]);
  await tellEvents(transaction, dialect);
  await sql`
    delete from indexer_events where id < (select max(id) from indexer_events)
  `.execute(transaction);
}
