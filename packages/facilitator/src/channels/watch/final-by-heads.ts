import type { RpcRequester } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import { readBlocks } from "./read-block.ts";
import type { BlockId } from "./read-channels.ts";

/** Readings at former heads by channel, each until its block is final. The last looked for last. */
export type FormerHeads = Map<Hex, { reading: ChannelReading; lookedAt: number }>;

/**
 * Longest time between two looks at a channel. Another process may have watched in between, and a
 * withdrawal takes fifteen minutes at least: a balance that was there at both was there all along.
 */
const maxGapMs = 600_000;

/**
 * Final readings from a node that keeps fewer states than `finalAfter`. A reading names its block
 * by its hash. So one of a former head is final once that block is deep enough, and still in the
 * chain. One reading of each id is kept: a change is final after `finalAfter` blocks, and twice as
 * many at most. One that was not looked for lately is dropped. One that is final stays for as long,
 * until its reader deletes it: a fault in between loses none. One whose block cannot be read is
 * left out of this look, and holds up no other.
 *
 * @param options.now by the clock
 */
export async function finalByHeads(
  { rpc, finalAfter }: Pick<SettlementNetwork, "finalAfter"> & { rpc: RpcRequester },
  former: FormerHeads,
  {
    atHead,
    head,
    now,
  }: {
    atHead: ReadonlyMap<Hex, ChannelReading>;
    head: Pick<BlockId, "number">;
    now: number;
  },
): Promise<Map<Hex, ChannelReading>> {
  for (const [id, { lookedAt }] of former) {
    if (now - lookedAt < maxGapMs) break;
    former.delete(id);
  }
  const blocks = await readBlocks(rpc, deepFormers(former, atHead, { head, finalAfter }));
  const final = new Map<Hex, ChannelReading>();
  for (const [id, reading] of atHead) {
    const known = former.get(id)?.reading;
    let kept = reading;
    if (known !== undefined && known.block.number <= head.number) {
      const { number, hash } = known.block;
      const isDeep = head.number - number >= finalAfter;
      if (isDeep && !blocks.has(number)) continue;
      if (isDeep && blocks.get(number)?.hash === hash) {
        final.set(id, known);
        continue;
      }
      if (!isDeep) kept = known;
    }
    former.delete(id);
    former.set(id, { reading: kept, lookedAt: now });
  }
  return final;
}

/** Heights of former heads that are deep enough. */
function deepFormers(
  former: FormerHeads,
  ids: ReadonlyMap<Hex, unknown>,
  { head, finalAfter }: { head: Pick<BlockId, "number">; finalAfter: number },
): number[] {
  return [...ids.keys()].flatMap((id) => {
    const number = former.get(id)?.reading.block.number;
    return number !== undefined && head.number - number >= finalAfter ? [number] : [];
  });
}
