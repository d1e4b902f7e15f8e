import { type Clock, sleep } from "../clock.ts";

export interface RequestGate {
  /**
   * Waits for a slot. Resolves to the function that releases it; rejects with the signal's reason
   * when that comes first.
   */
  enter(calls: number, signal: AbortSignal): Promise<() => void>;
  inFlight(): number;
}

/**
 * Rate limit and concurrency limit of one endpoint. `maxInFlight` bounds concurrent HTTP requests,
 * first come first served. `callsPerSecond` bounds JSON-RPC calls, since providers count every call
 * of a batch.
 */
export function createRequestGate(options: {
  clock: Clock;
  maxInFlight: number;
  callsPerSecond: number | undefined;
}): RequestGate {
  const { clock, maxInFlight, callsPerSecond } = options;
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  // Token bucket that may go into debt: a request beyond its content waits until the debt is paid.
  let tokens = Math.max(1, callsPerSecond ?? 0);
  let filledAt = clock.now();

  function leave() {
    const next = waiting.shift();
    // The slot is handed over directly, so that no later request can take it in between.
    if (next) next();
    else inFlight -= 1;
  }

  function place(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (inFlight < maxInFlight) {
        inFlight += 1;
        return resolve();
      }
      function onPlace() {
        signal.removeEventListener("abort", onAbort);
        resolve();
      }
      function onAbort() {
        waiting.splice(waiting.indexOf(onPlace), 1);
        reject(signal.reason);
      }
      waiting.push(onPlace);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  function delayOf(calls: number): number {
    if (callsPerSecond === undefined) return 0;
    const now = clock.now();
    const refilled = tokens + ((now - filledAt) / 1000) * callsPerSecond;
    tokens = Math.min(refilled, Math.max(1, callsPerSecond)) - calls;
    filledAt = now;
    return tokens < 0 ? (-tokens / callsPerSecond) * 1000 : 0;
  }

  return {
    async enter(calls, signal) {
      await place(signal);
      const delayMs = delayOf(calls);
      try {
        if (delayMs > 0) await sleep(clock, delayMs, signal);
      } catch (error) {
        // Unsent calls are refunded; otherwise aborted requests would block all later ones.
        tokens += calls;
        leave();
        throw error;
      }
      return leave;
    },
    inFlight: () => inFlight,
  };
}
