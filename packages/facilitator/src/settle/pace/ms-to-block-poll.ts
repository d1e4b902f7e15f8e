import type { BlockPace } from "./block-pace.ts";

/** First wait after the due time, as a share of a block's time. */
const firstShare = 1 / 32;

/**
 * Wait until the next poll for a block: until it is due, then a growing share of its lateness.
 * Infinite where the pace is unknown.
 */
export function msToBlockPoll(pace: BlockPace, now: number): number {
  const [blockMs, dueAt] = [pace.blockMs(), pace.dueAt()];
  if (blockMs === undefined || dueAt === undefined) return Number.POSITIVE_INFINITY;
  return now < dueAt ? dueAt - now : Math.max(firstShare * blockMs, (now - dueAt) / 2);
}
