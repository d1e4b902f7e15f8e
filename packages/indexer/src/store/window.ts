import type { Dialect } from "@coinslot/storage";
import type { Kysely, Transaction } from "kysely";
import type { BlockId } from "./block-id.ts";
import { bytesOfHex, hexOfBytes } from "./bytes.ts";
import { addMark } from "./marks.ts";
import type { IndexerSchema } from "./schema.ts";

/** The window of a chain, ascending. The first is its base; empty while the chain is in history. */
export async function readWindow(
  kysely: Kysely<IndexerSchema>,
  chainId: number,
): Promise<BlockId[]> {
  const rows = await kysely
    .selectFrom("indexer_window")
    .select(["number", "hash"])
    .where("chain_id", "=", chainId)
    .orderBy("number")
    .execute();
  return rows.map(({ number, hash }) => ({ number, hash: hexOfBytes(hash) }));
}

/** The block of the window with this number. */
export async function findWindowBlock(
  kysely: Kysely<IndexerSchema>,
  { chainId, number }: { chainId: number; number: number },
): Promise<BlockId | undefined> {
  const row = await kysely
    .selectFrom("indexer_window")
    .select("hash")
    .where("chain_id", "=", chainId)
    .where("number", "=", number)
    .executeTakeFirst();
  return row && { number, hash: hexOfBytes(row.hash) };
}

export async function extendWindow(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
  blocks: readonly BlockId[],
): Promise<void> {
  await transaction
    .insertInto("indexer_window")
    .values(
      blocks.map(({ number, hash }) => ({ chain_id: chainId, number, hash: bytesOfHex(hash) })),
    )
    .execute();
}

/** Drops the window below the newest final block, which stays as the base, and marks that. */
export async function raiseBase(
  transaction: Transaction<IndexerSchema>,
  dialect: Dialect,
  { chainId, base, keep }: { chainId: number; base: number; keep: number },
): Promise<void> {
  const block = await findWindowBlock(transaction, { chainId, number: base });
  if (block !== undefined) await addMark(transaction, dialect, { chainId, block, keep });
  await transaction
    .deleteFrom("indexer_window")
    .where("chain_id", "=", chainId)
    .where("number", "<", base)
    .execute();
}

export async function cutWindow(
  transaction: Transaction<IndexerSchema>,
  chainId: number,
  { above }: { above: number },
): Promise<void> {
  await transaction
    .deleteFrom("indexer_window")
    .where("chain_id", "=", chainId)
    .where("number", ">", above)
    .execute();
}
