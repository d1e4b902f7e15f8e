import type { Database } from "@coinslot/storage";
import type { BlockId } from "../store/block-id.ts";
import { findFinalBlock } from "../store/final-block.ts";
import type { IndexerSchema } from "../store/schema.ts";
import type { KnownBalance } from "./known-balance.ts";

/**
 * An indexed block that an endpoint must have to be asked for the balance at `block`. It is that
 * one if its hash is known, else the newest final one.
 */
export async function findAnchor(
  { kysely }: Pick<Database<IndexerSchema>, "kysely">,
  chainId: number,
  { number, hash }: NonNullable<KnownBalance["block"]>,
): Promise<BlockId | undefined> {
  return hash === undefined ? findFinalBlock(kysely, chainId) : { number, hash };
}
