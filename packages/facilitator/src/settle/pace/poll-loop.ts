import type { Clock } from "@coinslot/chain";
import { createSingleFlight } from "@coinslot/concurrency";

/** Repeated polls for work that comes with time. */
export interface PollLoop {
  /** Polls now, or after the poll under way. */
  wake(): void;
  /** Polls after a pause, unless a poll begins before. */
  wakeIn(pauseMs: number): void;
  /** Resolves when the last poll is over. */
  stop(): Promise<void>;
}

/**
 * Repeats a poll, one at a time.
 *
 * @param poll resolves to the milliseconds until the next one; `undefined`: none until `wake`.
 * Never rejects
 */
export function startPollLoop(clock: Clock, poll: () => Promise<number | undefined>): PollLoop {
  let cancels: (() => void)[] = [];
  let isStopped = false;
  const polling = createSingleFlight(async () => {
    cancelAll();
    const pauseMs = await poll();
    if (pauseMs !== undefined) wakeIn(pauseMs);
  });
  polling.trigger();

  function wakeIn(pauseMs: number): void {
    if (!isStopped) cancels.push(clock.setTimer(polling.trigger, pauseMs));
  }

  function cancelAll(): void {
    for (const cancel of cancels) cancel();
    cancels = [];
  }

  return {
    wake: polling.trigger,
    wakeIn,
    async stop() {
      isStopped = true;
      await polling.stop();
      cancelAll();
    },
  };
}
