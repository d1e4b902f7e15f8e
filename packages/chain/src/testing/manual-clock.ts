import type { Clock } from "../clock.ts";

/** A clock that the test moves. */
export function createManualClock(): Clock & { advance(ms: number): void } {
  const timers = new Set<{ at: number; run: () => void }>();
  let now = 0;
  return {
    now: () => now,
    setTimer(run, delayMs) {
      const timer = { at: now + delayMs, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      now += ms;
      for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
        if (timer.at > now || !timers.delete(timer)) continue;
        timer.run();
      }
    },
  };
}
