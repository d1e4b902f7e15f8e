import type { Database } from "@coinslot/storage";
import { type Kysely, sql } from "kysely";
import type { BatchBlock, TransferInsert } from "../transfer-log/transfer-batch.ts";
import { hexOfBytes } from "./bytes.ts";
import type { BlockRange } from "./coverage.ts";
import type { KnownToken } from "./known-token.ts";
import { blockOfPosition, logsPerBlock } from "./position.ts";
import type { IndexerSchema } from "./schema.ts";

/** The stored transfers of some blocks. */
export interface StoredTransfers {
  rows: readonly TransferInsert[];
  /** The blocks of theirs. */
  blocks: ReadonlyMap<number, BatchBlock>;
}

/**
 * Reads the stored transfers of tokens in a range, by its primary key. Its time grows with their
 * number.
 */
export async function readStored(
  kysely: Kysely<IndexerSchema>,
  { chainId, tokens, range }: { chainId: number; tokens: readonly KnownToken[]; range: BlockRange },
): Promise<StoredTransfers> {
  const rows: TransferInsert[] = [];
  for (const { id } of tokens)
    rows.push(
      ...(await kysely
        .selectFrom("indexer_transfers")
        .selectAll()
        .where("token_id", "=", id)
        .where("position", ">=", range.from * logsPerBlock)
        .where("position", "<", range.next * logsPerBlock)
        .orderBy("position")
        .execute()),
    );
  const blocks = await kysely
    .selectFrom("indexer_blocks")
    .select(["number", "hash", "timestamp_ms"])
    .where("chain_id", "=", chainId)
    .where("number", ">=", range.from)
    .where("number", "<", range.next)
    .execute();
  const entries = blocks.map(
    ({ number, hash, timestamp_ms }) =>
      [number, { hash: hexOfBytes(hash), timestampMs: timestamp_ms }] as const,
  );
  return { rows, blocks: new Map(entries) };
}

/**
 * The block of the n-th stored transfer of a token from a block on; undefined where there are
 * fewer.
 */
export async function findBlockOfTransfer(
  { kysely }: Pick<Database<IndexerSchema>, "kysely">,
  { token, from, count }: { token: KnownToken; from: number; count: number },
): Promise<number | undefined> {
  const row = await kysely
    .selectFrom("indexer_transfers")
    .select("position")
    .where("token_id", "=", token.id)
    .where("position", ">=", from * logsPerBlock)
    .orderBy("position")
    .limit(sql.lit(1))
    .offset(sql.lit(count - 1))
    .executeTakeFirst();
  return row && blockOfPosition(row.position);
}

/** The block of the newest stored transfer below a block. */
export async function findBlockBelow(
  { kysely }: Pick<Database<IndexerSchema>, "kysely">,
  { token, below }: { token: KnownToken; below: number },
): Promise<number | undefined> {
  const row = await kysely
    .selectFrom("indexer_transfers")
    .select("position")
    .where("token_id", "=", token.id)
    .where("position", "<", below * logsPerBlock)
    .orderBy("position", "desc")
    .limit(sql.lit(1))
    .executeTakeFirst();
  return row && blockOfPosition(row.position);
}

/**
 * The highest block that holds the n-th stored transfer below a block, counted from above, of any
 * of the tokens.
 */
export async function findBlockOfRowBelow(
  kysely: Kysely<IndexerSchema>,
  { tokenIds, below, count }: { tokenIds: readonly number[]; below: number; count: number },
): Promise<number | undefined> {
  const blocks: number[] = [];
  for (const id of tokenIds) {
    const row = await kysely
      .selectFrom("indexer_transfers")
      .select("position")
      .where("token_id", "=", id)
      .where("position", "<", Math.min(below * logsPerBlock, Number.MAX_SAFE_INTEGER))
      .orderBy("position", "desc")
      .limit(sql.lit(1))
      .offset(sql.lit(count - 1))
      .executeTakeFirst();
    if (row !== undefined) blocks.push(blockOfPosition(row.position));
  }
  return blocks.length === 0 ? undefined : Math.max(...blocks);
}

/** Everything that is stored of a transfer, as one text. */
export function describeRow(row: TransferInsert): string {
  return `${describeContent(row)} ${row.transaction_index} ${row.transfer_index}`;
}

/** As `describeRow`, without the indexes of the transaction and in it. */
export function describeContent(row: TransferInsert): string {
  const bytes = [row.transaction_hash, row.from_address, row.to_address].map(toText).join(" ");
  return `${row.token_id} ${row.position} ${row.amount} ${bytes}`;
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
