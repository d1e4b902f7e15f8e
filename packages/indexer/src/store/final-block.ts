import type { Kysely } from "kysely";
import type { BlockId } from "./block-id.ts";
import { findKnownBlock } from "./marks.ts";
import type { IndexerSchema } from "./schema.ts";
import { readWindow } from "./window.ts";

/**
 * The newest indexed final block, with its hash: the base of the window, or in history the newest
 * known block. Undefined before the first.
 */
export async function findFinalBlock(
  kysely: Kysely<IndexerSchema>,
  chainId: number,
): Promise<BlockId | undefined> {
  const [base] = await readWindow(kysely, chainId);
  return base ?? findKnownBlock(kysely, { chainId, number: Number.MAX_SAFE_INTEGER });
}
