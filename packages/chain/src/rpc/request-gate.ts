import { type Clock, sleep } from "../clock.ts";

export interface RequestGate {
  /**
   * Waits for a place. Resolves to the function that gives it back; rejects with the signal's
   * reason when that comes first.
   */
  enter(calls: number, signal: AbortSignal): Promise<() => void>;
  inFlight(): number;
}

/**
 * Limits what one endpoint gets: `maxInFlight` HTTP requests at a time, first come first served, and
 * `callsPerSecond` JSON-RPC calls, for providers count every call of a batch.
 */
export function createRequestGate(options: {
  clock: Clock;
  maxInFlight: number;
  callsPerSecond: number | undefined;
}): RequestGate {
  const { clock, maxInFlight, callsPerSecond } = options;
  const waiting: (() => void)[] = [];
  let inFlight = 0;
  // A bucket that may go into debt: whoever takes more than there is waits until it is paid off.
  let tokens = Math.max(1, callsPerSecond ?? 0);
  let filledAt = clock.now();

  function leave() {
    const next = waiting.shift();
    // The place is handed over, so that nobody who comes later can take it in between.
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
        // What was not sent is not owed: or those who give up would keep out everybody after them.
        tokens += calls;
        leave();
        throw error;
      }
      return leave;
    },
    inFlight: () => inFlight,
  };
}
