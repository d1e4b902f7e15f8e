import type { Database } from "@coinslot/storage";
import type { Kysely, Selectable, Transaction } from "kysely";
import type { BlockRange } from "./coverage.ts";
import type { IndexerSchema } from "./schema.ts";

/** Work that waits for the writing process. */
export type WriterRequest = Selectable<IndexerSchema["indexer_requests"]>;

/** Requests work of the writing process, which may be this one. Resolves to the request's id. */
export async function addRequest(
  kysely: Kysely<IndexerSchema>,
  { nowMs }: Pick<Database<IndexerSchema>["dialect"], "nowMs">,
  request: {
    chainId: number;
    kind: WriterRequest["kind"];
    /** None: every token of the chain. */
    tokenId?: number | null | undefined;
    from: number;
    /** None: no end. */
    next?: number | null | undefined;
  },
): Promise<number> {
  const { id } = await kysely
    .insertInto("indexer_requests")
    .values({
      chain_id: request.chainId,
      kind: request.kind,
      token_id: request.tokenId ?? null,
      from_block: request.from,
      next_block: request.next ?? null,
      requested_at_ms: nowMs(),
      done_at_ms: null,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  return id;
}

/**
 * The oldest request of a chain that is not done. In doubt about final blocks a reindex is passed
 * over. It deletes the blocks by which the common one is found. A later rewind goes before it.
 */
export async function readNextRequest(
  kysely: Kysely<IndexerSchema>,
  { chainId, isDoubted }: { chainId: number; isDoubted: boolean },
): Promise<WriterRequest | undefined> {
  return kysely
    .selectFrom("indexer_requests")
    .selectAll()
    .where("chain_id", "=", chainId)
    .where("done_at_ms", "is", null)
    .$if(isDoubted, (requests) => requests.where("kind", "!=", "reindex"))
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
}

/** A later request, which is done, to verify the blocks of another one again; undefined: none. */
export async function findVerifyAfter(
  transaction: Transaction<IndexerSchema>,
  { id, chain_id, token_id, from_block }: WriterRequest,
): Promise<Pick<WriterRequest, "id" | "next_block"> | undefined> {
  return transaction
    .selectFrom("indexer_requests")
    .select(["id", "next_block"])
    .where("chain_id", "=", chain_id)
    .where("kind", "=", "verify")
    .where("token_id", token_id === null ? "is" : "=", token_id)
    .where("from_block", "=", from_block)
    .where("id", ">", id)
    .where("done_at_ms", "is not", null)
    .limit(1)
    .executeTakeFirst();
}

/** Returns whether a rewind of the chain waits to be done, whatever waits before it. */
export async function isRewindPending(
  kysely: Kysely<IndexerSchema>,
  chainId: number,
): Promise<boolean> {
  const pending = await kysely
    .selectFrom("indexer_requests")
    .select("id")
    .where("chain_id", "=", chainId)
    .where("kind", "=", "rewind")
    .where("done_at_ms", "is", null)
    .executeTakeFirst();
  return pending !== undefined;
}

export async function endRequest(
  transaction: Transaction<IndexerSchema>,
  { nowMs }: Pick<Database<IndexerSchema>["dialect"], "nowMs">,
  id: number,
  change: { next_block?: number } = {},
): Promise<void> {
  await transaction
    .updateTable("indexer_requests")
    .set({ ...change, done_at_ms: nowMs() })
    .where("id", "=", id)
    .execute();
}

/** Blocks from `next` on do not count as verified before any more: they were taken back. */
export async function cutRequests(
  transaction: Transaction<IndexerSchema>,
  { chainId, next }: { chainId: number; next: number },
): Promise<void> {
  await transaction
    .updateTable("indexer_requests")
    .set({ next_block: next })
    .where("chain_id", "=", chainId)
    .where("kind", "=", "verify")
    .where("done_at_ms", "is not", null)
    .where("next_block", ">", next)
    .execute();
}

/** The requested blocks, with no end as the largest number. */
export function rangeOfRequest({ from_block, next_block }: WriterRequest): BlockRange {
  return { from: from_block, next: next_block ?? Number.MAX_SAFE_INTEGER };
}
