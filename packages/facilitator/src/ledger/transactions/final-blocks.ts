import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type ExpressionBuilder, sql, type Transaction } from "kysely";
import type { LedgerContext, LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import type { KnownBlock } from "./undo-blocks.ts";

/** Heights of final blocks that are kept: an hour of the fastest chains, weeks of slow ones. */
const maxHeights = 100_000;
/** Blocks of one statement. */
const blocksAtOnce = 1_000;

/** A final block that the chain does not have any more. */
export interface LeftBlock extends KnownBlock {
  /** When that was seen first, in Unix milliseconds on the database's clock. */
  leftAt: number;
}

/** Keeps blocks that have become final, in the transaction that makes them so. */
export async function keepFinalBlocks(
  { transaction, dialect }: { transaction: Transaction<LedgerSchema>; dialect: Dialect },
  { network, blocks }: { network: Network; blocks: readonly KnownBlock[] },
): Promise<void> {
  const rows = blocks.map(({ number, hash }) => ({ network, number, hash, left_at: null }));
  await dialect.insertMany<LedgerSchema, "final_blocks">(
    transaction,
    "final_blocks",
    rows,
    "ignore",
  );
  await transaction
    .deleteFrom("final_blocks")
    .where("network", "=", network)
    .where("number", "<", Math.max(...blocks.map(({ number }) => number)) - maxHeights)
    .where("left_at", "is", null)
    .execute();
}

/** The next final blocks below a height, the newest first, that are not known to have left. */
export async function findFinalBlocks(
  { db }: LedgerReads,
  { network, below, limit }: { network: Network; below: number; limit: number },
): Promise<KnownBlock[]> {
  return db
    .selectFrom("final_blocks")
    .select(["number", "hash"])
    .where("network", "=", network)
    .where("number", "<", below)
    .where("left_at", "is", null)
    .orderBy("number", "desc")
    .limit(limit)
    .execute();
}

/** The final blocks that have left the chain, until their payments are taken back. */
export async function findLeftBlocks({ db }: LedgerReads, network: Network): Promise<LeftBlock[]> {
  const rows = await db
    .selectFrom("final_blocks")
    .select(["number", "hash", "left_at"])
    .where("network", "=", network)
    .where("left_at", "is not", null)
    .orderBy("number")
    .execute();
  return rows.map(({ number, hash, left_at }) => ({ number, hash, leftAt: left_at ?? 0 }));
}

interface BlocksOf {
  network: Network;
  blocks: readonly KnownBlock[];
}

/** Marks blocks in whose place the chain shows others. The first time stays. */
export async function markLeft(
  { write, dialect }: Pick<LedgerContext, "write" | "dialect">,
  { network, blocks }: BlocksOf,
): Promise<void> {
  for (const some of inSteps(blocks)) {
    await write((transaction) =>
      transaction
        .updateTable("final_blocks")
        .set({ left_at: dialect.nowMs() })
        .where("network", "=", network)
        .where(isIn(some))
        .where("left_at", "is", null)
        .execute(),
    );
  }
}

/** Takes the mark from blocks that a node shows on the chain after all. */
export async function unmarkLeft(
  { write }: Pick<LedgerContext, "write">,
  { network, blocks }: BlocksOf,
): Promise<void> {
  for (const some of inSteps(blocks)) {
    await write((transaction) =>
      transaction
        .updateTable("final_blocks")
        .set({ left_at: null })
        .where("network", "=", network)
        .where(isIn(some))
        .execute(),
    );
  }
}

/** Forgets blocks whose payments and transactions are taken back. */
export async function forgetLeft(
  { write }: Pick<LedgerContext, "write">,
  { network, blocks }: BlocksOf,
): Promise<void> {
  for (const some of inSteps(blocks)) {
    await write((transaction) =>
      transaction
        .deleteFrom("final_blocks")
        .where("network", "=", network)
        .where(isIn(some))
        .where("left_at", "is not", null)
        .execute(),
    );
  }
}

/** A statement has two parameters for each block, and engines take some ten thousand. */
function* inSteps(blocks: readonly KnownBlock[]): Generator<readonly KnownBlock[], void, void> {
  for (let start = 0; start < blocks.length; start += blocksAtOnce) {
    yield blocks.slice(start, start + blocksAtOnce);
  }
}

/**
 * As an expression, hashes are compared after the lookup: SQLite would look up each with each
 * number.
 */
function isIn(blocks: readonly KnownBlock[]) {
  return (where: ExpressionBuilder<LedgerSchema, "final_blocks">) =>
    where.and([
      where("number", "in", [...new Set(blocks.map(({ number }) => number))]),
      where(
        sql<string>`${where.ref("hash")} || ''`,
        "in",
        blocks.map(({ hash }) => hash),
      ),
    ]);
}
