import type { Hex } from "@coinslot/protocol";
import type { SettlementNetwork } from "../../settle/context.ts";
import { readBlock } from "./read-block.ts";
import type { BlockId } from "./read-channels.ts";

/** What was read at a block. */
interface Reading {
  block: BlockId;
}

/** Readings at former heads, each until its block is final; of a channel, or of a nonce. */
export type FormerHeads<T extends Reading> = Map<Hex, T>;

/**
 * Final readings from a node that keeps fewer states than `finalAfter`. A reading names its block
 * by its hash. So one of a former head is final once that block is deep enough, and still in the
 * chain. One reading of each id is kept: a change is final after `finalAfter` blocks, and twice as
 * many at most.
 *
 * @throws RpcError
 */
export async function finalByHeads<T extends Reading>(
  { rpc, finalAfter }: Pick<SettlementNetwork, "rpc" | "finalAfter">,
  former: FormerHeads<T>,
  { atHead, head }: { atHead: ReadonlyMap<Hex, T>; head: Pick<BlockId, "number"> },
): Promise<Map<Hex, T>> {
  const final = new Map<Hex, T>();
  const blocks = new Map<number, BlockId | undefined>();
  for (const [id, reading] of atHead) {
    const known = former.get(id);
    if (known !== undefined && known.block.number <= head.number) {
      const { number, hash } = known.block;
      if (head.number - number < finalAfter) continue;
      if (!blocks.has(number)) blocks.set(number, await readBlock(rpc, number));
      if (blocks.get(number)?.hash === hash) {
        final.set(id, known);
        former.delete(id);
        continue;
      }
    }
    former.set(id, reading);
  }
  return final;
}
