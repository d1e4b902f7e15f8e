import type { Transaction } from "kysely";
import type { IndexerSchema } from "./schema.ts";

/** The last second that is a date. Beyond it milliseconds soon exceed a number. */
export const maxBlockTime = 8_640_000_000_000;
const maxTimestampMs = maxBlockTime * 1_000;

/**
 * Bounds block times that a release before has stored. Those beyond 2^53 milliseconds cannot be
 * read: a chain with one could be neither followed nor queried. Blocks are found by their index.
 */
export async function boundTimes(
  transaction: Transaction<IndexerSchema>,
  chainIds: readonly number[],
): Promise<void> {
  await transaction
    .updateTable("indexer_chains")
    .set({ head_timestamp_ms: null })
    .where("head_timestamp_ms", ">", maxTimestampMs)
    .execute();
  for (const chainId of chainIds)
    await transaction
      .updateTable("indexer_blocks")
      .set({ timestamp_ms: maxTimestampMs })
      .where("chain_id", "=", chainId)
      .where("timestamp_ms", ">", maxTimestampMs)
      .execute();
  await transaction
    .updateTable("indexer_events")
    .set({ timestamp_ms: maxTimestampMs })
    .where("timestamp_ms", ">", maxTimestampMs)
    .execute();
}
