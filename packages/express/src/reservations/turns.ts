import { setTimeout as sleep } from "node:timers/promises";
import { createKeyedMutex } from "@coinslot/concurrency";

/** Lets requests of one key, such as a payer, wait for its running ones, in order of arrival. */
export interface Turns {
  /** Attempts until it need not wait, or its patience is over; returns the last result. */
  take<Result>(options: {
    key: string;
    attempt: () => Promise<Result>;
    mustWait: (result: Result) => boolean;
    /** Whether the caller has stopped waiting for the result. */
    isGone: () => boolean;
  }): Promise<Result>;
}

/**
 * Creates one FIFO queue per key. Only the first request of each queue polls. The others wait
 * behind it: a thousand of them cost no more than one. Requests of another process have a queue of
 * their own. The record that both processes ask decides which request is served.
 */
export function createTurns(
  options: { patienceMs?: number; pauseMs?: number; maxWaiting?: number } = {},
): Turns {
  const { patienceMs = 10_000, pauseMs = 50, maxWaiting = 1_000 } = options;
  const queue = createKeyedMutex<string>();

  return {
    async take({ key, attempt, mustWait, isGone }) {
      if (queue.count(key) === 0) {
        const result = await attempt();
        if (!mustWait(result)) return result;
      }
      if (queue.count(key) >= maxWaiting) return attempt();
      const deadline = performance.now() + patienceMs;
      return queue.run(key, async () => {
        for (;;) {
          const result = await attempt();
          const isOver = isGone() || performance.now() >= deadline;
          if (isOver || !mustWait(result)) return result;
          await sleep(pauseMs);
        }
      });
    },
  };
}
