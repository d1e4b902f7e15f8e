/** Wait before each receipt poll for a transaction that was sent, in milliseconds. */
export interface LookPace {
  /** A transaction has been sent: time from then to the first poll. */
  first(): number;
  /** Time to the next poll, after one that found a transaction still open. */
  next(): number;
  /** Records that a transaction was found in a block, and the time since it was sent. */
  found(afterMs: number): void;
}

/** A receipt poll right after the broadcast comes too early on most chains, and is cheap. */
const soonestMs = 2;
/** Longest wait for a first poll: a block may come at any moment. */
const latestFirstMs = 16;

/**
 * Polls when a transaction is about to be in a block: at three quarters of the time that it took
 * lately, then after a quarter of that wait, then with doubling waits. A transaction found at the
 * first poll may have been there for a while. So the interval adapts to a faster chain too.
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
