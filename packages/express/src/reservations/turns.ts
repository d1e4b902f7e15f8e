import { setTimeout as sleep } from "node:timers/promises";

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

interface Line {
  /** Resolves when the last request in the line has left it. */
  last: Promise<void>;
  length: number;
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
  const lines = new Map<string, Line>();

  return {
    async take({ key, attempt, mustWait, isGone }) {
      if (!lines.has(key)) {
        const result = await attempt();
        if (!mustWait(result)) return result;
      }
      const line = lines.get(key) ?? { last: Promise.resolve(), length: 0 };
      if (line.length >= maxWaiting) return attempt();
      const deadline = performance.now() + patienceMs;
      const before = line.last;
      let leave: () => void = () => undefined;
      line.last = new Promise((resolve) => {
        leave = resolve;
      });
      line.length += 1;
      lines.set(key, line);
      try {
        await before;
        for (;;) {
          const result = await attempt();
          const isOver = isGone() || performance.now() >= deadline;
          if (isOver || !mustWait(result)) return result;
          await sleep(pauseMs);
        }
      } finally {
        line.length -= 1;
        if (line.length === 0) lines.delete(key);
        leave();
      }
    },
  };
}
