import type { Database } from "@coinslot/storage";
import { sql } from "kysely";
import type { KnownToken } from "../store/known-token.ts";
import { blockOfPosition, logsPerBlock } from "../store/position.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { IndexedTransfer } from "../transfer.ts";
import { readTransfer, type TransferRow } from "./read-transfer.ts";

/** The transfers of a token, each with its block and its chain's progress. */
export function selectIndexedTransfers(
  { kysely }: Pick<Database<IndexerSchema>, "kysely">,
  { id, chainId }: KnownToken,
) {
  return kysely
    .selectFrom("indexer_transfers as transfer")
    .innerJoin("indexer_blocks as block", (join) =>
      join
        .on("block.chain_id", "=", chainId)
        .on("block.number", "=", sql<number>`transfer.position / ${sql.lit(logsPerBlock)}`),
    )
    .leftJoin("indexer_chains as chain", "chain.chain_id", "block.chain_id")
    .leftJoin("indexer_checks as check", "check.chain_id", "block.chain_id")
    .where("transfer.token_id", "=", id)
    .select([
      "transfer.position",
      "transfer.transaction_index",
      "transfer.transfer_index",
      "transfer.transaction_hash",
      "transfer.from_address",
      "transfer.to_address",
      "transfer.amount",
      "block.hash as block_hash",
      "block.timestamp_ms",
      "chain.head_number",
      "chain.finalized_number",
      "check.doubted_from",
      sql<number | null>`(
        select from_block from indexer_verified_ranges as verified
        where verified.token_id = transfer.token_id and verified.from_block <= block.number
        and verified.next_block > block.number
      )`.as("verified_from"),
    ]);
}

/** A row of `selectIndexedTransfers`. */
export interface IndexedTransferRow extends TransferRow {
  head_number: number | null;
  finalized_number: number | null;
  doubted_from: number | null;
  /** Null where its block is not verified. */
  verified_from: number | null;
}

export function readIndexedTransfer(
  row: IndexedTransferRow,
  context: Parameters<typeof readTransfer>[1],
): IndexedTransfer {
  const blockNumber = blockOfPosition(row.position);
  return {
    ...readTransfer(row, context),
    // The head on record may be a moment older than the newest block.
    confirmations: Math.max(1, (row.head_number ?? 0) - blockNumber + 1),
    // A block that was read once is not final, at any depth.
    finalized:
      row.verified_from !== null &&
      blockNumber <= (row.finalized_number ?? -1) &&
      blockNumber < (row.doubted_from ?? Number.POSITIVE_INFINITY),
  };
}
