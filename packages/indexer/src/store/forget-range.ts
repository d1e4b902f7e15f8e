import type { Dialect } from "@coinslot/storage";
import type { Kysely, Transaction } from "kysely";
import { hexOfBytes } from "./bytes.ts";
import { addGains, forgetOpenings } from "./change-balances.ts";
import { type BlockRange, uncoverRange } from "./coverage.ts";
import { logsPerBlock } from "./position.ts";
import type { IndexerSchema } from "./schema.ts";
import { wrapUint256 } from "./wrap-uint256.ts";

/** The tokens of a chain in the database, those included that are not configured any more; or one of them. */
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

/** The opposite of `addTransfers`: a range is not indexed any more. Readers of events are not told. */
export async function forgetRange(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { tokenIds, range }: { tokenIds: readonly number[]; range: BlockRange },
): Promise<void> {
  const first = range.from * logsPerBlock;
  const end = Math.min(range.next * logsPerBlock, Number.MAX_SAFE_INTEGER);
  for (const tokenId of tokenIds) {
    const gone = await transaction
      .deleteFrom("indexer_transfers")
      .where("token_id", "=", tokenId)
      .where("position", ">=", first)
      .where("position", "<", end)
      .returning(["from_address", "to_address", "amount"])
      .execute();
    const gains = new Map<string, bigint>();
    for (const row of gone) {
      const amount = dialect.amount.decode(row.amount);
      const from = hexOfBytes(row.from_address).slice(2);
      const to = hexOfBytes(row.to_address).slice(2);
      gains.set(from, wrapUint256((gains.get(from) ?? 0n) + amount));
      gains.set(to, wrapUint256((gains.get(to) ?? 0n) - amount));
    }
    await addGains(transaction, dialect, { tokenId, gains });
    await forgetOpenings(transaction, tokenId);
  }
  await uncoverRange(transaction, "indexer_ranges", { tokenIds, range });
  await uncoverRange(transaction, "indexer_verified_ranges", { tokenIds, range });
  for (const tokenId of tokenIds) await resetIfEmpty(transaction, tokenId);
}

/** Without an indexed block every balance is nothing: whatever was wrong with them is over. */
async function resetIfEmpty(
  transaction: Transaction<IndexerSchema>,
  tokenId: number,
): Promise<void> {
  const left = await transaction
    .selectFrom("indexer_ranges")
    .select("token_id")
    .where("token_id", "=", tokenId)
    .limit(1)
    .executeTakeFirst();
  if (left !== undefined) return;
  await transaction.deleteFrom("indexer_balances").where("token_id", "=", tokenId).execute();
}
