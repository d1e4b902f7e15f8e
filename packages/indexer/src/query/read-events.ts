import type { Database } from "@coinslot/storage";
import type { Address } from "viem";
import { bytesOfHex } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { TransferEvent } from "../transfer.ts";
import { readTransfer } from "./read-transfer.ts";

export interface EventsQuestion {
  token: KnownToken;
  /** In lowercase. */
  address: Address;
  after: number;
  limit: number;
}

/**
 * Events of one address after an id, in order; the last id looked at; and whether some are
 * forgotten.
 */
export async function readEvents(
  { kysely, dialect }: Database<IndexerSchema>,
  { token, address, after, limit }: EventsQuestion,
): Promise<{ events: TransferEvent[]; lastId: number; isIncomplete: boolean }> {
  // Before the events: one written in between is then read, and looked at again, but not passed
  // over.
  const { first, last } = await readEventBounds({ kysely });
  const bytes = bytesOfHex(address);
  const rows = await kysely
    .selectFrom("indexer_events")
    .selectAll()
    .where("id", ">", after)
    .where("token_id", "=", token.id)
    .where((row) => row.or([row("from_address", "=", bytes), row("to_address", "=", bytes)]))
    .orderBy("id")
    .limit(limit)
    .execute();
  const events = rows.map((row) => ({
    id: row.id,
    type: row.kind,
    transfer: readTransfer(row, { token, dialect }),
  }));
  const lastRead = events.at(-1)?.id ?? after;
  return {
    events,
    lastId: events.length === limit ? lastRead : Math.max(lastRead, last),
    isIncomplete: first > after + 1 && after < last,
  };
}

/** The ids of the oldest and the newest event that are kept; 0 where there is none. */
export async function readEventBounds({
  kysely,
}: Pick<Database<IndexerSchema>, "kysely">): Promise<{ first: number; last: number }> {
  const row = await kysely
    .selectFrom("indexer_events")
    .select(({ fn }) => [fn.min("id").as("first"), fn.max("id").as("last")])
    .executeTakeFirst();
  return { first: row?.first ?? 0, last: row?.last ?? 0 };
}
