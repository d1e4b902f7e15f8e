import type { Kysely, Transaction } from "kysely";
import type { KnownToken } from "./known-token.ts";
import type { IndexerSchema } from "./schema.ts";

/** Blocks `from` up to but not including `next`. */
export interface BlockRange {
  from: number;
  next: number;
}

/** The indexed ranges of each token, ascending. */
export async function readCoverage(
  kysely: Kysely<IndexerSchema>,
  tokens: readonly KnownToken[],
): Promise<ReadonlyMap<number, readonly BlockRange[]>> {
  const coverage = new Map<number, BlockRange[]>(tokens.map(({ id }) => [id, []]));
  const rows = await kysely
    .selectFrom("indexer_ranges")
    .selectAll()
    .where("token_id", "in", [...coverage.keys()])
    .orderBy("from_block")
    .execute();
  for (const { token_id, from_block, next_block } of rows)
    coverage.get(token_id)?.push({ from: from_block, next: next_block });
  return coverage;
}

/** Notes that a range of a token is indexed; it becomes one with its neighbours. Returns whether others lie above it. */
export async function coverRange(
  transaction: Transaction<IndexerSchema>,
  tokenId: number,
  { from, next }: BlockRange,
): Promise<{ isBelowOthers: boolean }> {
  if (from >= next) return { isBelowOthers: false };
  const rows = await transaction
    .selectFrom("indexer_ranges")
    .selectAll()
    .where("token_id", "=", tokenId)
    .execute();
  const neighbours = rows.filter((row) => row.from_block <= next && row.next_block >= from);
  const [below] = neighbours;
  if (neighbours.length === 1 && below !== undefined && below.from_block <= from) {
    // So it is nearly always: history and live go upwards.
    await transaction
      .updateTable("indexer_ranges")
      .set({ next_block: Math.max(next, below.next_block) })
      .where("token_id", "=", tokenId)
      .where("from_block", "=", below.from_block)
      .execute();
  } else {
    await replaceRanges(transaction, tokenId, { neighbours, range: { from, next } });
  }
  return { isBelowOthers: rows.some((row) => row.next_block > next) };
}

/** Puts one range in the place of a new one and its neighbours. */
async function replaceRanges(
  transaction: Transaction<IndexerSchema>,
  tokenId: number,
  {
    neighbours,
    range: { from, next },
  }: { neighbours: readonly { from_block: number; next_block: number }[]; range: BlockRange },
): Promise<void> {
  if (neighbours.length > 0) {
    await transaction
      .deleteFrom("indexer_ranges")
      .where("token_id", "=", tokenId)
      .where(
        "from_block",
        "in",
        neighbours.map((row) => row.from_block),
      )
      .execute();
  }
  await transaction
    .insertInto("indexer_ranges")
    .values({
      token_id: tokenId,
      from_block: Math.min(from, ...neighbours.map((row) => row.from_block)),
      next_block: Math.max(next, ...neighbours.map((row) => row.next_block)),
    })
    .execute();
}

/** Notes that blocks above `block` are not indexed any more. Returns the tokens of which whole ranges are gone. */
export async function uncoverAbove(
  transaction: Transaction<IndexerSchema>,
  tokenIds: readonly number[],
  block: number,
): Promise<ReadonlySet<number>> {
  const gone = await transaction
    .deleteFrom("indexer_ranges")
    .where("token_id", "in", tokenIds)
    .where("from_block", ">", block)
    .returning("token_id")
    .execute();
  await transaction
    .updateTable("indexer_ranges")
    .set({ next_block: block + 1 })
    .where("token_id", "in", tokenIds)
    .where("next_block", ">", block + 1)
    .execute();
  return new Set(gone.map((row) => row.token_id));
}
