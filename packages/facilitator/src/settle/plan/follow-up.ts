import type { BlockPace } from "../pace/block-pace.ts";
import type { Flight } from "../relay/relayer-state.ts";

/** Share of a block's time before the next block at which a further transaction leaves. */
const leadShare = 1 / 10;
/** Largest lead, as a share of a block's time, however long a transaction takes to its node. */
const maxLeadShare = 1 / 4;
/** Interval between further transactions once the block may come at any moment. */
const lateShare = 1 / 4;
/** Age of a transaction in flight, in blocks, from which it is stuck. */
const stuckBlocks = 2;
/** Time without a block from which the chain has stopped. No usual chain is slower. */
const maxSilenceMs = 15_000;
/** Blocks that come faster are soon enough for the next transaction. */
const minBlockMs = 100;

/**
 * Time from which a transaction that is not full may follow those in flight, to reach the next
 * block. Infinite: only a full one follows them. Milliseconds of the clock of `pace`.
 *
 * A transaction costs 21,000 gas and some 5,000 of Multicall3 besides its payments of 45,000. So
 * payments gather, and a further transaction leaves at the last moment for the next block. That is
 * a tenth of a block's time before it, and the time that a transaction takes to a node. A block
 * then holds two that are not full: the first after the block before, and this one. At 50 payments
 * a second that is 4% of gas with blocks of 250 ms, and 1% with slower ones.
 *
 * A payment that comes later than that waits for the block behind. While the block is late, a
 * further transaction may leave each quarter of a block's time. After two blocks' time without one,
 * it may leave each time that the silence has doubled: the chain may be slower than its known pace.
 * The oldest transaction in flight is stuck if it is two blocks old and others came since. The
 * chain has stopped if none came for 15 s. Those behind its nonce would wait with it, and take the
 * places. Then payments gather, as they do where blocks come at once, or their pace is unknown.
 *
 * @param dispatchMs usual time from a plan to a node's answer
 */
export function followUpAt(options: {
  pace: BlockPace;
  flight: Flight;
  dispatchMs: number;
  now: number;
}): number {
  const { pace, flight, dispatchMs, now } = options;
  const blockMs = pace.blockMs();
  if (blockMs === undefined || blockMs < minBlockMs) return Number.POSITIVE_INFINITY;
  const leadMs = Math.min(leadShare * blockMs + dispatchMs, maxLeadShare * blockMs);
  const dueAt = pace.dueAt() ?? flight.newestAt;
  const lastMoment = dueAt - leadMs;
  // Before the oldest transaction, blocks came that were not looked for.
  const silentSince = Math.max(dueAt - blockMs, flight.oldestAt);
  const silentMs = flight.newestAt - silentSince;
  const lateMs = silentMs < stuckBlocks * blockMs ? lateShare * blockMs : silentMs;
  const at = flight.newestAt < lastMoment ? lastMoment : flight.newestAt + lateMs;
  const leavesAt = Math.max(at, now);
  const stuckMs = Math.max(stuckBlocks * blockMs, Math.min(leavesAt - silentSince, maxSilenceMs));
  return leavesAt > flight.oldestAt + stuckMs ? Number.POSITIVE_INFINITY : at;
}
