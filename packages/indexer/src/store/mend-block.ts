import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import type { TransferBatch, TransferInsert } from "../transfer-log/transfer-batch.ts";
import type { BalanceSums } from "./balance-sums.ts";
import { bytesOfHex, hexOfBytes } from "./bytes.ts";
import { announce } from "./events.ts";
import type { KnownToken } from "./known-token.ts";
import { logsPerBlock } from "./position.ts";
import { describeRow, readStored } from "./read-stored.ts";
import type { IndexerSchema } from "./schema.ts";

export interface Mend {
  chainId: number;
  tokens: readonly KnownToken[];
  /** The block as the chain has it. */
  block: { number: number; hash: string; timestampMs: number };
  /** Transfers of these tokens in the block. */
  truth: TransferBatch;
  /** True if events announce the change to readers: the transfers that differ. */
  isAnnounced: boolean;
  /**
   * Sums of all addresses that the stored transfers or the true ones name. The mend changes them.
   */
  sums: BalanceSums;
}

/**
 * Replaces the stored transfers of a block. The fault that made the rows wrong may have left the
 * balances right, or wrong in another way. So the caller passes the sums without this block. The
 * balances become those sums with the block.
 */
export async function mendBlock(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, tokens, block, truth, isAnnounced, sums }: Mend,
): Promise<void> {
  const { number } = block;
  const range = { from: number, next: number + 1 };
  const before = await readStored(transaction, { chainId, tokens, range });
  const tokenIds = tokens.map(({ id }) => id);
  const oldBlock = await transaction
    .selectFrom("indexer_blocks")
    .select(["hash", "timestamp_ms"])
    .where("chain_id", "=", chainId)
    .where("number", "=", number)
    .executeTakeFirst();
  await transaction
    .deleteFrom("indexer_transfers")
    .where("token_id", "in", tokenIds)
    .where("position", ">=", number * logsPerBlock)
    .where("position", "<", (number + 1) * logsPerBlock)
    .execute();
  const hash = bytesOfHex(block.hash);
  const row = { chain_id: chainId, number, hash, timestamp_ms: block.timestampMs };
  await dialect.insertMany(transaction, "indexer_blocks", [row], {
    keys: ["chain_id", "number"],
    replace: ["hash", "timestamp_ms"],
  });
  await dialect.insertMany(transaction, "indexer_transfers", truth.rows);
  for (const row of before.rows) addTo(sums, row, -1n, dialect);
  for (const row of truth.rows) addTo(sums, row, 1n, dialect);
  if (!isAnnounced) return;
  const old = { block_hash: oldBlock?.hash ?? hash, timestamp_ms: oldBlock?.timestamp_ms ?? 0 };
  const isSameBlock =
    Buffer.compare(old.block_hash, hash) === 0 && old.timestamp_ms === block.timestampMs;
  const [gone, arriving] = isSameBlock
    ? [without(before.rows, truth.rows), without(truth.rows, before.rows)]
    : [before.rows, truth.rows];
  await announce(transaction, dialect, [
    ...[...gone].reverse().map((each) => ({ ...each, kind: "retraction" as const, ...old })),
    ...arriving.map((each) => ({
      ...each,
      kind: "transfer" as const,
      block_hash: hash,
      timestamp_ms: block.timestampMs,
    })),
  ]);
}

/** The transfers that others do not have, with any difference. */
function without(rows: readonly TransferInsert[], others: readonly TransferInsert[]) {
  const known = new Set(others.map(describeRow));
  return rows.filter((row) => !known.has(describeRow(row)));
}

function addTo(
  sums: BalanceSums,
  { token_id, from_address, to_address, amount }: TransferInsert,
  factor: bigint,
  dialect: Dialect,
): void {
  const change = factor * dialect.amount.decode(amount);
  for (const [address, gain] of [
    [from_address, -change],
    [to_address, change],
  ] as const) {
    const ofToken = sums.get(token_id);
    const key = hexOfBytes(address);
    const before = ofToken?.get(key);
    if (before !== undefined) ofToken?.set(key, before + gain);
  }
}
