/** Releases the mutex: the next waiter gets it. Called once. */
export type Release = () => void;

export interface MutexOptions {
  /** Longest wait of `acquire`. Default: none. */
  timeoutMs?: number | undefined;
  /** Makes the error of a wait that took too long. Default: a `TimeoutError` of `DOMException`. */
  timeoutError?: (() => Error) | undefined;
}

/** Mutual exclusion of callers in this process, first come first served. */
export interface Mutex {
  /**
   * Waits for the mutex. Rejects with the signal's reason, or with the error of the time limit, if
   * either comes first. The caller must call the returned function.
   */
  acquire(signal?: AbortSignal): Promise<Release>;
  /**
   * Runs `work` with the mutex held. Rejects with the work's error, or as `acquire` does. `work`
   * has not begun then.
   */
  run<Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result>;
}

/**
 * Creates a mutex.
 *
 * ```text
 *          acquire               release, no waiter
 *   free ───────────► held ───────────────────────────► free
 *                     │  ▲
 *                     └──┘ release: handed to the first waiter
 * ```
 *
 * | Race | Why it is safe |
 * |---|---|
 * | A release, and a caller that comes before the next waiter continues | The mutex stays held: it is handed over, and never free in between |
 * | A hand-over, and the time limit or the abort of that waiter | The hand-over takes the waiter out of the queue, and ends its timer and its listener, at once |
 * | An abort in the middle of the queue | That waiter leaves; the order of the others stays |
 * | A caller that holds the mutex, and acquires it again | It waits for itself; only a time limit ends that |
 */
export function createMutex(options: MutexOptions = {}): Mutex {
  const { timeoutMs, timeoutError = timedOut } = options;
  const waiting = new Set<() => void>();
  let isHeld = false;

  function release(): void {
    const [next] = waiting;
    if (next === undefined) {
      isHeld = false;
      return;
    }
    waiting.delete(next);
    next();
  }

  function acquire(signal?: AbortSignal): Promise<Release> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (!isHeld) {
      isHeld = true;
      return Promise.resolve(release);
    }
    return new Promise((resolve, reject) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(leave, timeoutMs);
      signal?.addEventListener("abort", leave, { once: true });
      waiting.add(take);

      function take(): void {
        clearTimeout(timer);
        signal?.removeEventListener("abort", leave);
        resolve(release);
      }
      function leave(): void {
        waiting.delete(take);
        clearTimeout(timer);
        signal?.removeEventListener("abort", leave);
        reject(signal?.aborted ? signal.reason : timeoutError());
      }
    });
  }

  return {
    acquire,
    async run(work, signal) {
      const done = await acquire(signal);
      try {
        return await work();
      } finally {
        done();
      }
    },
  };
}

function timedOut(): Error {
  return new DOMException("The mutex was not released in time", "TimeoutError");
}
