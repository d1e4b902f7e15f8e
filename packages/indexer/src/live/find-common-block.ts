import type { RpcEndpointHandle } from "@coinslot/chain";
import type { Kysely } from "kysely";
import { readHeaders } from "../rpc/block-header.ts";
import type { BlockId } from "../store/block-id.ts";
import { findKnownBlock } from "../store/marks.ts";
import type { IndexerSchema } from "../store/schema.ts";

/** Depth to which an endpoint's chain is the indexed one. */
export interface CommonPast {
  /** The newest known block that both have; undefined: none is known. */
  common: BlockId | undefined;
  /** The lowest known block that is another one there. */
  doubtedFrom: number;
}

/**
 * Finds the newest common block below one that differs, by the hashes of marks and of blocks with
 * transfers. It goes back in steps that double, then by halves. So the number of questions is the
 * logarithm of the depth. `compareHead` reads all blocks of its window in few requests instead.
 * These here are sparse, are of any depth, and are found in the database one by one.
 */
export async function findCommonBlock(
  endpoint: RpcEndpointHandle,
  kysely: Kysely<IndexerSchema>,
  { chainId, below }: { chainId: number; below: number },
): Promise<CommonPast> {
  const isCommon = async ({ number, hash }: BlockId) => {
    const [header] = await readHeaders(endpoint, [number]);
    return header?.hash === hash;
  };
  let doubtedFrom = below;
  let common: BlockId | undefined;
  /** No block up to this one is known to differ. */
  let low: number | undefined;
  for (let depth = 1; low === undefined; depth *= 2) {
    const number = Math.max(-1, Math.min(below - depth, doubtedFrom - 1));
    const known = await findKnownBlock(kysely, { chainId, number });
    if (known !== undefined && !(await isCommon(known))) doubtedFrom = known.number;
    else {
      common = known;
      low = known?.number ?? number;
    }
  }
  while (doubtedFrom - low > 1) {
    const middle = Math.floor((low + doubtedFrom) / 2);
    const known = await findKnownBlock(kysely, { chainId, number: middle });
    if (known === undefined || known.number <= low) low = middle;
    else if (await isCommon(known)) {
      common = known;
      low = middle;
    } else doubtedFrom = known.number;
  }
  return { common, doubtedFrom };
}
