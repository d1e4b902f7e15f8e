import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { hexOfBytes } from "./bytes.ts";
import { addGains, forgetOpenings } from "./change-balances.ts";
import { uncoverAbove, uncoverRange } from "./coverage.ts";
import { announce } from "./events.ts";
import { cutMarks } from "./marks.ts";
import { logsPerBlock } from "./position.ts";
import type { IndexerSchema } from "./schema.ts";
import { cutWindow } from "./window.ts";
import { wrapUint256 } from "./wrap-uint256.ts";

/**
 * Takes back everything above `block`, of every token of the chain, those included that are not
 * configured any more. Retractions announce each transfer that is gone, the newest first.
 */
export async function rollBack(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, block }: { chainId: number; block: number },
): Promise<void> {
  const tokens = await transaction
    .selectFrom("indexer_tokens")
    .select("id")
    .where("chain_id", "=", chainId)
    .execute();
  const tokenIds = tokens.map(({ id }) => id);
  const firstGone = (block + 1) * logsPerBlock;
  const gone = await transaction
    .selectFrom("indexer_transfers as transfer")
    .innerJoin("indexer_blocks as block", (join) =>
      join
        .on("block.chain_id", "=", chainId)
        .on("block.number", "=", sql<number>`transfer.position / ${sql.lit(logsPerBlock)}`),
    )
    .where("transfer.token_id", "in", tokenIds)
    .where("transfer.position", ">=", firstGone)
    .selectAll("transfer")
    .select(["block.hash as block_hash", "block.timestamp_ms"])
    .orderBy("transfer.position", "desc")
    .execute();

  for (const tokenId of tokenIds) {
    const gains = new Map<string, bigint>();
    for (const row of gone) {
      if (row.token_id !== tokenId) continue;
      const amount = dialect.amount.decode(row.amount);
      const from = hexOfBytes(row.from_address).slice(2);
      const to = hexOfBytes(row.to_address).slice(2);
      gains.set(from, wrapUint256((gains.get(from) ?? 0n) + amount));
      gains.set(to, wrapUint256((gains.get(to) ?? 0n) - amount));
    }
    await addGains(transaction, dialect, { tokenId, gains });
  }
  await transaction
    .deleteFrom("indexer_transfers")
    .where("token_id", "in", tokenIds)
    .where("position", ">=", firstGone)
    .execute();
  await transaction
    .deleteFrom("indexer_blocks")
    .where("chain_id", "=", chainId)
    .where("number", ">", block)
    .execute();
  // Blocks below a whole range, and not indexed, were replaced as well, or may have been.
  const uncovered = await uncoverAbove(transaction, tokenIds, block);
  for (const tokenId of uncovered) await forgetOpenings(transaction, tokenId);
  const range = { from: block + 1, next: Number.MAX_SAFE_INTEGER };
  await uncoverRange(transaction, "indexer_verified_ranges", { tokenIds, range });
  await cutMarks(transaction, chainId, { above: block });
  await cutWindow(transaction, chainId, { above: block });
  await announce(
    transaction,
    dialect,
    gone.map((row) => ({ ...row, kind: "retraction" as const })),
  );
}
