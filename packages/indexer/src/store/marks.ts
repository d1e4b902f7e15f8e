import type { Dialect } from "@coinslot/storage";
import { type Kysely, sql, type Transaction } from "kysely";
import type { BlockId } from "./block-id.ts";
import { bytesOfHex, hexOfBytes } from "./bytes.ts";
import { findVerifiedTo } from "./coverage.ts";
import type { IndexerSchema } from "./schema.ts";

/**
 * Records a block that is final now, and forgets marks that are further below it than a rewind may
 * go. The newest verified one stays: blocks above it may go without a command, however many.
 */
export async function addMark(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, block, keep }: { chainId: number; block: BlockId; keep: number },
): Promise<void> {
  const row = { chain_id: chainId, number: block.number, hash: bytesOfHex(block.hash) };
  await dialect.insertMany(transaction, "indexer_marks", [row], {
    keys: ["chain_id", "number"],
    replace: ["hash"],
  });
  const verifiedTo = await findVerifiedTo(transaction, chainId);
  const verified = transaction
    .selectFrom("indexer_marks")
    .select(({ fn }) => fn.coalesce(fn.max("number"), sql.lit(-1)).as("number"))
    .where("chain_id", "=", chainId)
    .where("number", "<=", verifiedTo);
  await transaction
    .deleteFrom("indexer_marks")
    .where("chain_id", "=", chainId)
    .where("number", "<", block.number - keep)
    .where("number", "<>", verified)
    .execute();
}

export async function cutMarks(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
  { above }: { above: number },
): Promise<void> {
  await transaction
    .deleteFrom("indexer_marks")
    .where("chain_id", "=", chainId)
    .where("number", ">", above)
    .execute();
}

/** The newest block up to `number` whose hash is known: of a mark, or of a stored transfer. */
export async function findKnownBlock(
  kysely: Kysely<IndexerSchema>,
  { chainId, number }: { chainId: number; number: number },
): Promise<BlockId | undefined> {
  const newestOf = (table: "indexer_marks" | "indexer_blocks") =>
    kysely
      .selectFrom(table)
      .select(["number", "hash"])
      .where("chain_id", "=", chainId)
      .where("number", "<=", number)
      .orderBy("number", "desc")
      .limit(sql.lit(1))
      .executeTakeFirst();
  const rows = await Promise.all([newestOf("indexer_marks"), newestOf("indexer_blocks")]);
  const found = rows.flatMap((row) => row ?? []).sort((a, b) => b.number - a.number);
  return found[0] && { number: found[0].number, hash: hexOfBytes(found[0].hash) };
}
