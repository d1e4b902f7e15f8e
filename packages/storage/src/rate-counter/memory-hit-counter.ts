import type { HitCounter } from "./hit-counter.ts";

// Unknown callers choose addresses: the memory that they can occupy is bounded.
const maxWindows = 100_000;

/** Counts in this process. */
export function createMemoryHitCounter({ now }: { now: () => number }): HitCounter {
  const windows = new Map<string, { count: number; resetsAtMs: number }>();

  /** Removes windows that have ended, then, if need be, the oldest ones. */
  function makeRoom(): void {
    const nowMs = now();
    for (const [name, { resetsAtMs }] of windows) {
      if (resetsAtMs <= nowMs) windows.delete(name);
    }
    for (const name of windows.keys()) {
      if (windows.size < maxWindows) break;
      windows.delete(name);
    }
  }

  return {
    async hit(name, windowMs) {
      const nowMs = now();
      const known = windows.get(name);
      if (known !== undefined && known.resetsAtMs > nowMs) {
        known.count += 1;
        return { count: known.count, resetsInMs: known.resetsAtMs - nowMs };
      }
      windows.delete(name);
      if (windows.size >= maxWindows) makeRoom();
      windows.set(name, { count: 1, resetsAtMs: nowMs + windowMs });
      return { count: 1, resetsInMs: windowMs };
    },
  };
}
