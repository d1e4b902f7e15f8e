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
  for (let depth = 1; common === undefined; depth *= 2) {
    const number = Math.min(below - depth, doubtedFrom - 1);
    const known = number < 0 ? undefined : await findKnownBlock(kysely, { chainId, number });
    if (known === undefined) return { common, doubtedFrom };
    if (await isCommon(known)) common = known;
    else doubtedFrom = known.number;
  }
  let low = common.number;
  while (doubtedFrom - low > 1) {
    const middle = Math.floor((low + doubtedFrom) / 2);
    const known = await findKnownBlock(kysely, { chainId, number: middle });
    if (known === undefined || known.number <= common.number) low = middle;
    else if (await isCommon(known)) {
      common = known;
      low = middle;
    } else doubtedFrom = known.number;
  }
  return { common, doubtedFrom };
}
