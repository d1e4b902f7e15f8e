import type { BlockPace } from "../pace/block-pace.ts";
import type { Flight } from "../relay/relayer-state.ts";

/** Share of a block's time before the next block at which a further transaction leaves. */
const leadShare = 1 / 10;
/** Largest lead, as a share of a block's time, however long a transaction takes to its node. */
const maxLeadShare = 1 / 4;
/** Interval between further transactions once the block may come at any moment. */
const lateShare = 1 / 4;
/** Age of a transaction in flight, in blocks, from which it is stuck, or the chain has stopped. */
const stuckBlocks = 2;
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
 * further transaction may leave each quarter of a block's time. After two blocks' time the chain
 * has stopped, or the oldest transaction in flight is stuck. Those behind its nonce would wait with
 * it, and take the places. Then payments gather, as they do where blocks come at once, or their
 * pace is unknown.
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
  const lastMoment = (pace.dueAt() ?? flight.newestAt) - leadMs;
  const at = flight.newestAt < lastMoment ? lastMoment : flight.newestAt + lateShare * blockMs;
  const isStuck = Math.max(at, now) > flight.oldestAt + stuckBlocks * blockMs;
  return isStuck ? Number.POSITIVE_INFINITY : at;
}
