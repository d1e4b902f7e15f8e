import type { Dialect } from "@coinslot/storage";
import { type Kysely, sql, type Transaction } from "kysely";
import type { TransferInsert } from "../transfer-log/transfer-batch.ts";
import { hexOfBytes } from "./bytes.ts";
import { addGains, forgetOpenings } from "./change-balances.ts";
import { type BlockRange, uncoverRange } from "./coverage.ts";
import { blockOfPosition, logsPerBlock } from "./position.ts";
import type { IndexerSchema } from "./schema.ts";
import { wrapUint256 } from "./wrap-uint256.ts";

/**
 * The tokens of a chain in the database, those included that are not configured any more; or one of
 * them.
 */
export async function findTokenIds(
  kysely: Kysely<IndexerSchema>,
  chainId: number,
  tokenId: number | null,
): Promise<number[]> {
  if (tokenId !== null) return [tokenId];
  const rows = await kysely
    .selectFrom("indexer_tokens")
    .select("id")
    .where("chain_id", "=", chainId)
    .execute();
  return rows.map(({ id }) => id);
}

/** The opposite of `addTransfers`: a range is not indexed any more. No events announce it. */
export async function forgetRange(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, tokenIds, range }: { chainId: number; tokenIds: readonly number[]; range: BlockRange },
): Promise<void> {
  const blocks = new Set<number>();
  const first = range.from * logsPerBlock;
  const end = Math.min(range.next * logsPerBlock, Number.MAX_SAFE_INTEGER);
  for (const tokenId of tokenIds) {
    const gone = await transaction
      .deleteFrom("indexer_transfers")
      .where("token_id", "=", tokenId)
      .where("position", ">=", first)
      .where("position", "<", end)
      .returning(["position", "from_address", "to_address", "amount"])
      .execute();
    for (const { position } of gone) blocks.add(blockOfPosition(position));
    const gains = new Map<string, bigint>();
    for (const [address, gain] of sumGains(gone, dialect)) gains.set(address, wrapUint256(-gain));
    await addGains(transaction, dialect, { tokenId, gains });
    await forgetOpenings(transaction, tokenId);
  }
  await uncoverRange(transaction, "indexer_ranges", { tokenIds, range });
  await uncoverRange(transaction, "indexer_verified_ranges", { tokenIds, range });
  await forgetBlocks(transaction, chainId, [...blocks]);
}

/** Blocks named in one statement. */
const blocksAtOnce = 500;

/** Forgets blocks, with their hashes and times, in which no token has a transfer any more. */
export async function forgetBlocks(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
  blocks: readonly number[],
): Promise<void> {
  const tokenIds = await findTokenIds(transaction, chainId, null);
  for (let start = 0; start < blocks.length; start += blocksAtOnce)
    await transaction
      .deleteFrom("indexer_blocks as block")
      .where("block.chain_id", "=", chainId)
      .where("block.number", "in", blocks.slice(start, start + blocksAtOnce))
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("indexer_transfers as transfer")
              .select("transfer.position")
              .where("transfer.token_id", "in", tokenIds)
              .where(
                "transfer.position",
                ">=",
                sql<number>`block.number * ${sql.lit(logsPerBlock)}`,
              )
              .where(
                "transfer.position",
                "<",
                sql<number>`(block.number + 1) * ${sql.lit(logsPerBlock)}`,
              ),
          ),
        ),
      )
      .execute();
}

/**
 * Sets a token's balances to the sums of its transfers, where no block below `below` is indexed of
 * it. That removes any fault in them. The blocks above are few, as they may still be replaced.
 */
export async function resetBalances(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { tokenId, below }: { tokenId: number; below: number },
): Promise<void> {
  const indexed = await transaction
    .selectFrom("indexer_ranges")
    .select("token_id")
    .where("token_id", "=", tokenId)
    .where("from_block", "<", below)
    .limit(1)
    .executeTakeFirst();
  if (indexed !== undefined) return;
  await transaction.deleteFrom("indexer_balances").where("token_id", "=", tokenId).execute();
  const rows = await transaction
    .selectFrom("indexer_transfers")
    .select(["from_address", "to_address", "amount"])
    .where("token_id", "=", tokenId)
    .execute();
  await addGains(transaction, dialect, { tokenId, gains: sumGains(rows, dialect) });
}

/** Gain of each address by transfers. */
function sumGains(
  rows: readonly Pick<TransferInsert, "from_address" | "to_address" | "amount">[],
  { amount }: Pick<Dialect, "amount">,
): Map<string, bigint> {
  const gains = new Map<string, bigint>();
  for (const row of rows) {
    const change = amount.decode(row.amount);
    const from = hexOfBytes(row.from_address).slice(2);
    const to = hexOfBytes(row.to_address).slice(2);
    gains.set(from, wrapUint256((gains.get(from) ?? 0n) - change));
    gains.set(to, wrapUint256((gains.get(to) ?? 0n) + change));
  }
  return gains;
}
