import type { Clock } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";

/** Repeated looks at work that comes with time. */
export interface Looking {
  /** Looks now, or after the look under way. */
  wake(): void;
  /** Looks after a pause, unless a look begins before. */
  wakeIn(pauseMs: number): void;
  /** Resolves when the last look is over. */
  stop(): Promise<void>;
}

/**
 * Repeats a look, one at a time.
 *
 * @param look resolves to the milliseconds until the next one; `undefined`: none until `wake`.
 * Never rejects
 */
export function keepLooking(clock: Clock, look: () => Promise<number | undefined>): Looking {
  let cancels: (() => void)[] = [];
  let isStopped = false;
  const looking = createSingleFlight(async () => {
    cancelAll();
    const pauseMs = await look();
    if (pauseMs !== undefined) wakeIn(pauseMs);
  });
  looking.trigger();

  function wakeIn(pauseMs: number): void {
    if (!isStopped) cancels.push(clock.setTimer(looking.trigger, pauseMs));
  }

  function cancelAll(): void {
    for (const cancel of cancels) cancel();
    cancels = [];
  }

  return {
    wake: looking.trigger,
    wakeIn,
    async stop() {
      isStopped = true;
      await looking.stop();
      cancelAll();
    },
  };
}
