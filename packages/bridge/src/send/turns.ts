/** Lets those who ask do their work one after the other, in the order in which they asked. */
export interface Turns {
  /** Rejects as the work does; with the signal's reason if that comes first, and then the work is not begun. */
  take<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return {
    take(work, signal) {
      const before = last;
      const result = untilAborted(before, signal).then(work);
      // Who leaves the queue still leaves those behind it waiting for those before it.
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
