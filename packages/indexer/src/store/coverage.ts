import type { Kysely, Transaction } from "kysely";
import type { KnownToken } from "./known-token.ts";
import type { IndexerSchema } from "./schema.ts";

/** Blocks `from` up to but not including `next`. */
export interface BlockRange {
  from: number;
  next: number;
}

/** The blocks that are indexed, and those of them that are verified. */
type RangeTable = "indexer_ranges" | "indexer_verified_ranges";

/** The indexed, or the verified, ranges of each token, ascending. */
export async function readCoverage(
  kysely: Kysely<IndexerSchema>,
  tokens: readonly Pick<KnownToken, "id">[],
  table: RangeTable = "indexer_ranges",
): Promise<ReadonlyMap<number, readonly BlockRange[]>> {
  const coverage = new Map<number, BlockRange[]>(tokens.map(({ id }) => [id, []]));
  const rows = await kysely
    .selectFrom(table)
    .selectAll()
    .where("token_id", "in", [...coverage.keys()])
    .orderBy("from_block")
    .execute();
  for (const { token_id, from_block, next_block } of rows)
    coverage.get(token_id)?.push({ from: from_block, next: next_block });
  return coverage;
}

/** Returns whether one range of every token includes these blocks. */
export function isCovered(
  coverage: Awaited<ReturnType<typeof readCoverage>>,
  tokens: readonly Pick<KnownToken, "id">[],
  blocks: BlockRange,
): boolean {
  return tokens.every(({ id }) =>
    coverage.get(id)?.some(({ from, next }) => from <= blocks.from && blocks.next <= next),
  );
}

/**
 * Records that a range of a token is indexed, or verified, and merges it with its neighbours.
 * Returns whether others lie above it.
 */
export async function coverRange(
  transaction: Transaction<IndexerSchema>,
  tokenId: number,
  { from, next }: BlockRange,
  table: RangeTable = "indexer_ranges",
): Promise<{ isBelowOthers: boolean }> {
  if (from >= next) return { isBelowOthers: false };
  const rows = await transaction
    .selectFrom(table)
    .selectAll()
    .where("token_id", "=", tokenId)
    .execute();
  const neighbours = rows.filter((row) => row.from_block <= next && row.next_block >= from);
  const [below] = neighbours;
  if (neighbours.length === 1 && below !== undefined && below.from_block <= from) {
    // The usual case: history and live go upwards.
    await transaction
      .updateTable(table)
      .set({ next_block: Math.max(next, below.next_block) })
      .where("token_id", "=", tokenId)
      .where("from_block", "=", below.from_block)
      .execute();
  } else {
    const range = {
      from: Math.min(from, ...neighbours.map((row) => row.from_block)),
      next: Math.max(next, ...neighbours.map((row) => row.next_block)),
    };
    await replaceRanges(transaction, table, { tokenId, old: neighbours, ranges: [range] });
  }
  return { isBelowOthers: rows.some((row) => row.next_block > next) };
}

/**
 * Records that a range of tokens is not indexed, or not verified, any more. Blocks beside it stay.
 */
export async function uncoverRange(
  transaction: Transaction<IndexerSchema>,
  table: RangeTable,
  { tokenIds, range }: { tokenIds: readonly number[]; range: BlockRange },
): Promise<void> {
  const rows = await transaction
    .selectFrom(table)
    .selectAll()
    .where("token_id", "in", tokenIds)
    .where("from_block", "<", range.next)
    .where("next_block", ">", range.from)
    .execute();
  for (const row of rows) {
    const rest = [
      { from: row.from_block, next: Math.min(row.next_block, range.from) },
      { from: Math.max(row.from_block, range.next), next: row.next_block },
    ].filter(({ from, next }) => from < next);
    await replaceRanges(transaction, table, { tokenId: row.token_id, old: [row], ranges: rest });
  }
}

/** Puts ranges in the place of others. */
async function replaceRanges(
  transaction: Transaction<IndexerSchema>,
  table: RangeTable,
  change: {
    tokenId: number;
    old: readonly { from_block: number }[];
    ranges: readonly BlockRange[];
  },
): Promise<void> {
  const { tokenId, old, ranges } = change;
  if (old.length > 0) {
    const froms = old.map((row) => row.from_block);
    await transaction
      .deleteFrom(table)
      .where("token_id", "=", tokenId)
      .where("from_block", "in", froms)
      .execute();
  }
  if (ranges.length === 0) return;
  await transaction
    .insertInto(table)
    .values(
      ranges.map(({ from, next }) => ({ token_id: tokenId, from_block: from, next_block: next })),
    )
    .execute();
}

/**
 * Records that blocks above `block` are not indexed any more. Returns the tokens of which whole
 * ranges are gone.
 */
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

/** The lowest indexed block of any token of a chain; 0: none. */
export async function findLowestIndexed(
  kysely: Kysely<IndexerSchema>,
  chainId: number,
): Promise<number> {
  const { lowest } = await kysely
    .selectFrom("indexer_ranges")
    .select(({ fn }) => fn.min("from_block").as("lowest"))
    .where("token_id", "in", (query) =>
      query.selectFrom("indexer_tokens").select("id").where("chain_id", "=", chainId),
    )
    .executeTakeFirstOrThrow();
  return Number(lowest ?? 0);
}

/**
 * The newest block of any token that is verified, or was before a request to verify it again; -1:
 * none. Tokens that are not configured any more count, since a rewind takes them back, too.
 */
export async function findVerifiedTo(
  kysely: Kysely<IndexerSchema>,
  chainId: number,
): Promise<number> {
  const verified = await kysely
    .selectFrom("indexer_verified_ranges")
    .select(({ fn }) => fn.max("next_block").as("next"))
    .where("token_id", "in", (query) =>
      query.selectFrom("indexer_tokens").select("id").where("chain_id", "=", chainId),
    )
    .executeTakeFirstOrThrow();
  const before = await kysely
    .selectFrom("indexer_requests")
    .select(({ fn }) => fn.max("next_block").as("next"))
    .where("chain_id", "=", chainId)
    .where("kind", "=", "verify")
    .where("done_at_ms", "is not", null)
    .executeTakeFirstOrThrow();
  return Math.max(0, Number(verified.next ?? 0), Number(before.next ?? 0)) - 1;
}
