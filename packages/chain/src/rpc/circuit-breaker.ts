import type { Clock } from "../clock.ts";

/**
 * States of the circuit breaker:
 *
 * - `closed`: requests pass.
 * - `open`: the endpoint rests; nothing is sent until `restMs()` is 0.
 * - `half-open`: the rest is over, and a single trial decides. Success closes the circuit; failure
 *   opens it again for twice as long.
 */
export type CircuitState = "closed" | "open" | "half-open";

export interface CircuitBreaker {
  state(): CircuitState;
  /** Remaining rest. */
  restMs(): number;
  succeeded(startedAt: number): void;
  /** `restAtLeastMs` opens the circuit at once (a rate limit, a failed trial). */
  failed(startedAt: number, restAtLeastMs?: number): void;
}

/**
 * Opens after `threshold` consecutive failures, for `restMs`, doubled each time up to `maxRestMs`.
 */
export function createCircuitBreaker(options: {
  clock: Clock;
  threshold: number;
  restMs: number;
  maxRestMs: number;
  onChange?: (state: "open" | "closed") => void;
}): CircuitBreaker {
  const { clock, threshold, maxRestMs } = options;
  let failures = 0;
  let rests = 0;
  let changedAt = Number.NEGATIVE_INFINITY;
  let restUntil: number | undefined;

  function restMs() {
    return restUntil === undefined ? 0 : Math.max(0, restUntil - clock.now());
  }

  return {
    restMs,
    state() {
      if (restUntil === undefined) return "closed";
      return restMs() > 0 ? "open" : "half-open";
    },
    succeeded(startedAt) {
      // A request from before the circuit opened says nothing about the present state.
      if (startedAt < changedAt) return;
      failures = 0;
      rests = 0;
      if (restUntil === undefined) return;
      restUntil = undefined;
      changedAt = clock.now();
      options.onChange?.("closed");
    },
    failed(startedAt, restAtLeastMs) {
      // Likewise: fifty requests that fail together are one outage, and do not double the rest.
      if (startedAt < changedAt) return;
      failures += 1;
      if (restAtLeastMs === undefined && failures < threshold) return;
      const grownMs = Math.min(options.restMs * 2 ** rests, maxRestMs);
      const now = clock.now();
      rests += 1;
      restUntil = now + Math.max(grownMs, restAtLeastMs ?? 0);
      changedAt = now;
      options.onChange?.("open");
    },
  };
}
