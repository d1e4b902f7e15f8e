import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import type { TransferBatch, TransferInsert } from "../transfer-log/transfer-batch.ts";
import { bytesOfHex } from "./bytes.ts";
import { addGains, lowerOpenings } from "./change-balances.ts";
import { type BlockRange, coverRange } from "./coverage.ts";
import { announce } from "./events.ts";
import type { KnownToken } from "./known-token.ts";
import { blockOfPosition } from "./position.ts";
import type { IndexerSchema } from "./schema.ts";

export interface AddTransfers {
  chainId: number;
  /** The tokens of these transfers. */
  tokens: readonly KnownToken[];
  range: BlockRange;
  batch: TransferBatch;
  /** True if events announce them to readers. */
  isAnnounced: boolean;
}

/**
 * Writes the consequences of reading a range of blocks: rows, blocks, balances, coverage, events.
 * All of it in the caller's transaction, so that a range is indexed as a whole or not at all.
 */
export async function addTransfers(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, tokens, range, batch, isAnnounced }: AddTransfers,
): Promise<void> {
  const blocks = [...batch.blocks].map(([number, { hash, timestampMs = 0 }]) => ({
    chain_id: chainId,
    number,
    hash: bytesOfHex(hash),
    timestamp_ms: timestampMs,
  }));
  // Another token may have brought the block before.
  await dialect.insertMany(transaction, "indexer_blocks", blocks, "ignore");
  await dialect.insertMany(transaction, "indexer_transfers", batch.rows);
  for (const token of tokens) {
    const tokenId = token.id;
    const gains = batch.gains.get(tokenId) ?? new Map<string, bigint>();
    const from = Math.max(range.from, token.startBlock);
    const { isBelowOthers } = await coverRange(transaction, tokenId, { ...range, from });
    await addGains(transaction, dialect, { tokenId, gains });
    if (isBelowOthers) await lowerOpenings(transaction, dialect, { tokenId, gains });
  }
  if (!isAnnounced) return;
  const rows = [...batch.rows].sort((a, b) => Number(a.position) - Number(b.position));
  await announce(
    transaction,
    dialect,
    rows.map((row) => eventOf(row, batch)),
  );
}

function eventOf(row: TransferInsert, { blocks }: TransferBatch) {
  const block = blocks.get(blockOfPosition(row.position));
  return {
    ...row,
    kind: "transfer" as const,
    block_hash: bytesOfHex(block?.hash ?? "0x"),
    timestamp_ms: block?.timestampMs ?? 0,
  };
}
