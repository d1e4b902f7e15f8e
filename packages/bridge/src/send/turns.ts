/** A queue of callers: runs one piece of work after the other, in the order of the calls. */
export interface Turns {
  /**
   * Rejects with the work's error, or with the signal's reason if that comes first. Then the work
   * is not begun.
   */
  take<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return {
    take(work, signal) {
      const before = last;
      const result = untilAborted(before, signal).then(work);
      // An aborted caller must not let the next one run before those ahead have ended.
      last = Promise.allSettled([before, result]);
      return result;
    },
  };
}

function untilAborted(turn: Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  if (signal === undefined) return turn;
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) return leave();
    signal.addEventListener("abort", leave, { once: true });
    turn.finally(() => signal.removeEventListener("abort", leave)).then(resolve, reject);
  });
}
