import type { Hex } from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import { readBlock } from "./read-block.ts";
import type { BlockId } from "./read-channels.ts";

/** Readings of channels at former heads, each until its block is final. */
export type FormerHeads = Map<Hex, ChannelReading>;

/**
 * Final readings from a node that keeps fewer states than `finalAfter`. A reading names its block
 * by its hash. So one of a former head is final once that block is deep enough, and still in the
 * chain. One reading of each channel is kept: a change is final after `finalAfter` blocks, and
 * twice as many at most.
 *
 * @throws RpcError
 */
export async function finalByHeads(
  { rpc, finalAfter }: Pick<SettlementNetwork, "rpc" | "finalAfter">,
  former: FormerHeads,
  { atHead, head }: { atHead: ReadonlyMap<Hex, ChannelReading>; head: BlockId },
): Promise<Map<Hex, ChannelReading>> {
  const final = new Map<Hex, ChannelReading>();
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
