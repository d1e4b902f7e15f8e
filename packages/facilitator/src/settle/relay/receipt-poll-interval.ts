/** How long to wait before each look for a transaction that was sent, in milliseconds. */
export interface LookPace {
  /** A transaction has been sent: what passes from then until the first look. */
  first(): number;
  /** What passes until the next look, after one that found something still open. */
  next(): number;
  /** A transaction was found in a block, so long after it was sent. */
  found(afterMs: number): void;
}

/** An ask for a receipt right after the broadcast comes too early on most chains, and is cheap. */
const soonestMs = 2;
/** A block may come at any moment: nobody waits longer than this for a first look. */
const latestFirstMs = 16;

/**
 * Looks when a transaction is about to be in a block: at three quarters of the time that it took
 * lately, then after a quarter of that wait, then after twice as long each time. What is found at the
 * first look may have been there for a while, so that the pace finds its way to a faster chain too.
 */
export function createLookPace({ maxMs }: { maxMs: number }): LookPace {
  let typicalMs = soonestMs;
  let waitMs = soonestMs;

  function first(): number {
    const wait = Math.min(Math.max((typicalMs * 3) / 4, soonestMs), latestFirstMs, maxMs);
    waitMs = Math.max(soonestMs, wait / 4);
    return wait;
  }

  return {
    first,
    next() {
      const wait = waitMs;
      waitMs = Math.min(2 * waitMs, maxMs);
      return wait;
    },
    found(afterMs) {
      typicalMs += (afterMs - typicalMs) / 4;
    },
  };
}
