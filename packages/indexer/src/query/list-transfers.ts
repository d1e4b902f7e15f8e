import type { Database } from "@coinslot/storage";
import { type RawBuilder, sql } from "kysely";
import type { Address } from "viem";
import { bytesOfHex } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import { LOGS_PER_BLOCK } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { IndexedTransfer } from "../transfer.ts";
import { readIndexedTransfer, selectIndexedTransfers } from "./indexed-transfers.ts";
import { cursorOfPosition, positionOfCursor, type TransferCursor } from "./transfer-cursor.ts";

export interface ListTransfers {
  /** Transfers from or to this address. */
  address: Address;
  /** Milliseconds since 1970, inclusive. */
  fromTs?: number | undefined;
  toTs?: number | undefined;
  /** By block and log. Default `desc`: the newest first. */
  sort?: "asc" | "desc" | undefined;
  /** At least 1. */
  limit: number;
  /** `next` of the page before. */
  cursor?: TransferCursor | undefined;
}

export interface TransferPage {
  transfers: IndexedTransfer[];
  /** Where the next page begins; undefined on the last one. */
  next: TransferCursor | undefined;
}

/**
 * A page of the transfers of one address.
 *
 * Two indexes, one of senders and one of recipients, each give their first `limit` positions in order; the page is
 * the first `limit` of both. A transfer to oneself is in both, and once in the page. However far the cursor or the
 * time is from the end, no more than that is read. That takes half the disk of a row per address and transfer.
 */
export async function listTransfers(
  database: Database<IndexerSchema>,
  token: KnownToken,
  { address, fromTs, toTs, sort = "desc", limit, cursor }: ListTransfers,
): Promise<TransferPage> {
  const bytes = bytesOfHex(address);
  const bounds: RawBuilder<boolean>[] = [];
  if (cursor !== undefined) {
    const after = sql.raw<unknown>(sort === "desc" ? "<" : ">");
    bounds.push(sql`position ${after} ${positionOfCursor(cursor)}`);
  }
  if (fromTs !== undefined) bounds.push(sql`position >= ${firstPositionFrom(token, fromTs)}`);
  if (toTs !== undefined) bounds.push(sql`position <= ${lastPositionUpTo(token, toTs)}`);
  // One more than asked for tells whether there is another page. As a literal, so that the planner sees how few.
  const wanted = sql.lit(limit + 1);

  const positions = (column: "from_address" | "to_address") =>
    database.kysely
      .selectFrom((from) => {
        const side = from
          .selectFrom("indexer_transfers")
          .select("position")
          .where("token_id", "=", token.id)
          .where(column, "=", bytes);
        return bounds
          .reduce((query, bound) => query.where(bound), side)
          .orderBy("position", sort)
          .limit(wanted)
          .as(column);
      })
      .select("position");

  const rows = await selectIndexedTransfers(database, token)
    .where("transfer.position", "in", (from) =>
      from
        .selectFrom(positions("from_address").union(positions("to_address")).as("either"))
        .select("either.position")
        .orderBy("either.position", sort)
        .limit(wanted),
    )
    .orderBy("transfer.position", sort)
    .execute();

  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    transfers: shown.map((row) => readIndexedTransfer(row, { token, dialect: database.dialect })),
    next: rows.length > limit && last ? cursorOfPosition(last.position) : undefined,
  };
}

// Block times never fall along a chain, so a time is a block, and a block is a position. Where there is no such
// block the comparison is with null, and gives no rows.

function firstPositionFrom({ chainId }: KnownToken, timestampMs: number) {
  return sql<number>`(
    select number from indexer_blocks where chain_id = ${chainId} and timestamp_ms >= ${timestampMs}
    order by timestamp_ms, number limit 1
  ) * ${sql.lit(LOGS_PER_BLOCK)}`;
}

function lastPositionUpTo({ chainId }: KnownToken, timestampMs: number) {
  return sql<number>`(
    select number from indexer_blocks where chain_id = ${chainId} and timestamp_ms <= ${timestampMs}
    order by timestamp_ms desc, number desc limit 1
  ) * ${sql.lit(LOGS_PER_BLOCK)} + ${sql.lit(LOGS_PER_BLOCK - 1)}`;
}
