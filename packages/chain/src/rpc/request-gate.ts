import type { Clock } from "../clock.ts";

export interface RequestGate {
  /**
   * Waits for a slot. Resolves to the function that releases it. Rejects with the signal's reason
   * when that comes first, and at once where too many of its kind wait.
   */
  enter(calls: number, signal: AbortSignal, options?: { isUrgent?: boolean }): Promise<() => void>;
  inFlight(): number;
}

interface Waiting {
  calls: number;
  enter(): void;
}

/** Requests of each kind that wait for a slot, at most. */
const maxWaiting = 1_000;
/** Urgent requests in a row before another one has its turn. */
const urgentInRow = 4;
const windowMs = 1_000;

/**
 * Rate limit and concurrency limit of one endpoint. `maxInFlight` bounds concurrent HTTP requests.
 * `callsPerSecond` bounds the JSON-RPC calls of any second, since providers count every call of a
 * batch. Urgent requests go before others, each kind in the order of arrival; every fifth turn is
 * that of the others. One that needs more room than there is delays those behind it, so that it has
 * its turn too.
 */
export function createRequestGate(options: {
  clock: Clock;
  maxInFlight: number;
  callsPerSecond: number | undefined;
}): RequestGate {
  const { clock, maxInFlight, callsPerSecond = Number.POSITIVE_INFINITY } = options;
  const urgent: Waiting[] = [];
  const usual: Waiting[] = [];
  let inFlight = 0;
  let urgentTurns = 0;
  /** Calls of the last second, the oldest first. */
  const sent: { calls: number; until: number }[] = [];
  let cancelTimer: (() => void) | undefined;

  function open(): void {
    cancelTimer?.();
    cancelTimer = undefined;
    while (inFlight < maxInFlight) {
      const isUsual = usual.length > 0 && (urgent.length === 0 || urgentTurns >= urgentInRow);
      const queue = isUsual ? usual : urgent;
      const [next] = queue;
      if (next === undefined) return;
      const delayMs = msToRoom(next.calls);
      if (delayMs > 0) {
        cancelTimer = clock.setTimer(open, delayMs);
        return;
      }
      queue.shift();
      urgentTurns = isUsual ? 0 : urgentTurns + 1;
      inFlight += 1;
      next.enter();
    }
  }

  /** Time until this many calls have room; counts them as sent where there is room now. */
  function msToRoom(calls: number): number {
    if (callsPerSecond === Number.POSITIVE_INFINITY) return 0;
    const now = clock.now();
    while (sent[0] !== undefined && sent[0].until <= now) sent.shift();
    let used = sent.reduce((sum, each) => sum + each.calls, 0);
    for (const each of sent) {
      if (used + calls <= callsPerSecond) break;
      used -= each.calls;
      if (used === 0 || used + calls <= callsPerSecond) return each.until - now;
    }
    // A request that is larger than a second's worth takes the seconds after it.
    sent.push({ calls, until: now + windowMs * Math.max(1, calls / callsPerSecond) });
    return 0;
  }

  function leave(): void {
    inFlight -= 1;
    open();
  }

  return {
    enter(calls, signal, { isUrgent = false } = {}) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const queue = isUrgent ? urgent : usual;
        if (queue.length >= maxWaiting) return reject(new Error("too many requests wait"));
        const waiting: Waiting = {
          calls,
          enter() {
            signal.removeEventListener("abort", onAbort);
            resolve(leave);
          },
        };
        function onAbort() {
          queue.splice(queue.indexOf(waiting), 1);
          reject(signal.reason);
          // It may have been the one that all others waited for.
          open();
        }
        signal.addEventListener("abort", onAbort, { once: true });
        queue.push(waiting);
        open();
      });
    },
    inFlight: () => inFlight,
  };
}
