import type { Database } from "@coinslot/storage";
import { type Kysely, sql, type Transaction, type Updateable } from "kysely";
import type { IndexerSchema } from "./schema.ts";

/** Results of a chain's second readings; undefined before the first. */
export async function readChecks(kysely: Kysely<IndexerSchema>, chainId: number) {
  return kysely
    .selectFrom("indexer_checks")
    .selectAll()
    .where("chain_id", "=", chainId)
    .executeTakeFirst();
}

export type ChecksNews = Pick<
  Updateable<IndexerSchema["indexer_checks"]>,
  "proofs" | "problem" | "doubted_from"
> & {
  /** Number of blocks that were found to be wrong, and mended. */
  repairedBlocks?: number;
};

/** Records the result of a second reading for every process. Undefined fields stay as they are. */
export async function updateChecks(
  transaction: Transaction<IndexerSchema>,
  { nowMs }: Pick<Database<IndexerSchema>["dialect"], "nowMs">,
  { chainId, news }: { chainId: number; news: ChecksNews },
): Promise<void> {
  const { repairedBlocks = 0, ...columns } = news;
  await transaction
    .insertInto("indexer_checks")
    .values({ chain_id: chainId })
    .onConflict((conflict) => conflict.column("chain_id").doNothing())
    .execute();
  await transaction
    .updateTable("indexer_checks")
    .set((row) => ({
      ...columns,
      repaired_blocks: row("repaired_blocks", "+", repairedBlocks),
      ...(repairedBlocks > 0 && { repaired_at_ms: nowMs() }),
      ...(columns.doubted_from !== undefined && {
        doubted_since_ms:
          columns.doubted_from === null
            ? null
            : sql<number>`coalesce(doubted_since_ms, ${nowMs()})`,
      }),
    }))
    .where("chain_id", "=", chainId)
    .execute();
}
