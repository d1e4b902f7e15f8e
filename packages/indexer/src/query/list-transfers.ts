import type { Database } from "@coinslot/storage";
import { type Expression, expressionBuilder, type SqlBool, sql } from "kysely";
import type { Address } from "viem";
import { bytesOfHex } from "../store/bytes.ts";
import type { KnownToken } from "../store/known-token.ts";
import { logsPerBlock, positionOf } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { IndexedTransfer } from "../transfer.ts";
import { readIndexedTransfer, selectIndexedTransfers } from "./indexed-transfers.ts";

export interface ListTransfers {
  /** Transfers from or to this address. */
  address: Address;
  /** Milliseconds since 1970, both inclusive. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
  /** By block, then by log. */
  sort: "asc" | "desc";
  /** At least 1. */
  limit: number;
  /** The last transfer of the page before. It may be gone meanwhile: its place counts. */
  after?: { blockNumber: number; logIndex: number } | undefined;
}

/**
 * A page of the transfers of one address.
 *
 * Two indexes, one of senders and one of recipients, each give their first `limit` positions in
 * order. The page is the first `limit` of both. A transfer to oneself is in both, and once in the
 * page. No more than that is read, at any distance of the cursor or the time from the end.
 */
export async function listTransfers(
  database: Database<IndexerSchema>,
  token: KnownToken,
  { address, fromMs, toMs, sort, limit, after }: ListTransfers,
): Promise<IndexedTransfer[]> {
  const bytes = bytesOfHex(address);
  const where = expressionBuilder<IndexerSchema, "indexer_transfers">();
  const bounds: Expression<SqlBool>[] = [];
  if (after !== undefined) {
    const last = positionOf(after.blockNumber, after.logIndex);
    bounds.push(where("position", sort === "desc" ? "<" : ">", last));
  }
  // No block is older than 1970, and the service's default is to begin there.
  if (fromMs !== undefined && fromMs > 0)
    bounds.push(where("position", ">=", firstPositionFrom(token, fromMs)));
  if (toMs !== undefined) bounds.push(where("position", "<=", lastPositionUpTo(token, toMs)));
  // As a literal, so that PostgreSQL plans for this small number.
  const wanted = sql.lit(limit);

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

  return rows.map((row) => readIndexedTransfer(row, { token, dialect: database.dialect }));
}

// Block times never fall along a chain, so a time is a block, and a block is a position. Where
// there is no such block the comparison is with null, and gives no rows.

function firstPositionFrom({ chainId }: KnownToken, timestampMs: number) {
  return sql<number>`(
    select number from indexer_blocks where chain_id = ${chainId} and timestamp_ms >= ${timestampMs}
    order by timestamp_ms, number limit 1
  ) * ${sql.lit(logsPerBlock)}`;
}

function lastPositionUpTo({ chainId }: KnownToken, timestampMs: number) {
  return sql<number>`(
    select number from indexer_blocks where chain_id = ${chainId} and timestamp_ms <= ${timestampMs}
    order by timestamp_ms desc, number desc limit 1
  ) * ${sql.lit(logsPerBlock)} + ${sql.lit(logsPerBlock - 1)}`;
}
