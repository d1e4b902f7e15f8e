/** Bounds the entries of one kind. */
export interface EntryBudget {
  /**
   * @returns entries left out since the last one, or `undefined` where this one is left out, too
   */
  take(): number | undefined;
}

const burst = 30;
/** 288 entries a day, of some 300 bytes. */
const pauseMs = 5 * 60_000;

/** Creates a budget as a token bucket. @param now milliseconds of a clock */
export function createEntryBudget({ now }: { now: () => number }): EntryBudget {
  let left = burst;
  let filledAt = now();
  let omitted = 0;

  return {
    take() {
      const gained = Math.floor((now() - filledAt) / pauseMs);
      // A clock that was set back fills nothing until it has caught up.
      if (gained > 0) {
        left = Math.min(left + gained, burst);
        filledAt += gained * pauseMs;
      }
      if (left === 0) {
        omitted += 1;
        return undefined;
      }
      left -= 1;
      const counted = omitted;
      omitted = 0;
      return counted;
    },
  };
}
