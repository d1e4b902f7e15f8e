/** Verifications that wait for an answer to others before they share a request of their own. */
export const gatherMs = 40;
/** Longest time between two requests of one process, however many processes there are. */
const maxSpacingMs = 100;
/** Share of a block's time: a payment that is tried so much later mostly makes the same block. */
const shareOfBlock = 1 / 8;

/**
 * Least time between two requests of a process, unless the second one is large.
 *
 * Processes that share a ledger share its buyers, too: a fourth of the load would come in a fourth
 * of the groups, at the price of one each. So all together ask about as often as one process would.
 * Alone, a process that waits for no answer asks at once.
 */
export function trialSpacing(options: {
  /** That live and share a ledger, this one among them. */
  processes: number;
  blockTimeMs: number;
}): number {
  const { processes, blockTimeMs } = options;
  if (processes <= 1) return 0;
  return Math.min(processes * gatherMs, blockTimeMs * shareOfBlock, maxSpacingMs);
}
