import { blockByNumber, parseBlockHeader, type RpcRequester } from "@coinslot/chain";

/** Times of blocks, asked for as few of them as possible: they rise with the numbers. */
export function createBlockTimes(rpc: RpcRequester) {
  const known = new Map<number, { early: number; late: number }>();
  return {
    /** True if a block is older than a time, in Unix milliseconds. */
    async isBefore(block: number, time: number): Promise<boolean> {
      const bounds = known.get(time) ?? { early: -1, late: Number.POSITIVE_INFINITY };
      known.set(time, bounds);
      if (block <= bounds.early) return true;
      if (block >= bounds.late) return false;
      const header = parseBlockHeader(await rpc.request(blockByNumber(BigInt(block))));
      const isEarly = header !== undefined && Number(header.timestamp) * 1_000 < time;
      if (isEarly) bounds.early = block;
      else bounds.late = block;
      return isEarly;
    },
  };
}
