/** Time as a parameter, so that a test can hold it. */
export interface Clock {
  /** Monotonic milliseconds. Only differences have a meaning. */
  now(): number;
  /** Runs `run` once after `delayMs`, unless the returned function is called before. */
  setTimer(run: () => void, delayMs: number): () => void;
}

/** The clock of this process. It does not follow corrections of the system's date. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimer(run, delayMs) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`; rejects with the signal's reason as soon as it is aborted. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.setTimer(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, delayMs);
    function onAbort() {
      cancel();
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
