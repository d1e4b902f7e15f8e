import type { Database } from "@coinslot/storage";
import type { Transaction, Updateable } from "kysely";
import type { IndexerSchema } from "./schema.ts";

/** The writer's knowledge of the chain itself. */
export interface ChainHead {
  number: number;
  timestampMs: number;
  finalized: number;
}

export type ChainNews = Pick<
  Updateable<IndexerSchema["indexer_chains"]>,
  "state" | "problem" | "announced_from" | "told_from"
> & {
  head?: ChainHead;
  /** Something new was indexed, or there was nothing left to index. */
  isProgress: boolean;
};

/** Makes the row of a chain that is new to this database. */
export async function addChain(
  { kysely, dialect }: Database<IndexerSchema>,
  { chainId, name }: { chainId: number; name: string },
): Promise<void> {
  await kysely
    .insertInto("indexer_chains")
    .values({
      chain_id: chainId,
      name,
      state: "history",
      problem: null,
      seen_at_ms: dialect.nowMs(),
      progress_at_ms: dialect.nowMs(),
      announced_from: null,
      told_from: null,
    })
    .onConflict((conflict) => conflict.column("chain_id").doUpdateSet({ name }))
    .execute();
}

export async function readChain(
  { kysely }: Pick<Database<IndexerSchema>, "kysely">,
  chainId: number,
) {
  return kysely
    .selectFrom("indexer_chains")
    .selectAll()
    .where("chain_id", "=", chainId)
    .executeTakeFirstOrThrow();
}

/** Records the status of the chain for every process. Undefined fields stay as they are. */
export async function updateChain(
  transaction: Transaction<IndexerSchema>,
  dialect: Database<IndexerSchema>["dialect"],
  { chainId, news }: { chainId: number; news: ChainNews },
): Promise<void> {
  const { head, isProgress, ...columns } = news;
  await transaction
    .updateTable("indexer_chains")
    .set({
      ...columns,
      ...(head && {
        head_number: head.number,
        head_timestamp_ms: head.timestampMs,
        finalized_number: head.finalized,
      }),
      seen_at_ms: dialect.nowMs(),
      ...(isProgress && { progress_at_ms: dialect.nowMs() }),
    })
    .where("chain_id", "=", chainId)
    .execute();
}
