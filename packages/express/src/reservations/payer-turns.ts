import { setTimeout as sleep } from "node:timers/promises";

/** Lets requests of one payer wait for its own that run, in the order in which they came. */
export interface PayerTurns {
  /** Attempts something until it need not wait, or is waited for long enough; returns the last result. */
  take<Result>(options: {
    payer: string;
    attempt: () => Promise<Result>;
    mustWait: (result: Result) => boolean;
    /** Whether nobody waits for the result any more. */
    isGone: () => boolean;
  }): Promise<Result>;
}

interface Line {
  /** Resolves when the last one in the line has left it. */
  last: Promise<void>;
  length: number;
}

/**
 * Creates turns of payers. One request of each payer asks again and again, and the others stand
 * behind it, so that a thousand of them cost no more than one. Requests of another process stand in
 * a line of their own: who is served is decided by the record that both ask.
 */
export function createPayerTurns(
  options: { patienceMs?: number; pauseMs?: number; maxWaiting?: number } = {},
): PayerTurns {
  const { patienceMs = 10_000, pauseMs = 50, maxWaiting = 1_000 } = options;
  const lines = new Map<string, Line>();

  return {
    async take({ payer, attempt, mustWait, isGone }) {
      if (!lines.has(payer)) {
        const result = await attempt();
        if (!mustWait(result)) return result;
      }
      const line = lines.get(payer) ?? { last: Promise.resolve(), length: 0 };
      if (line.length >= maxWaiting) return attempt();
      const deadline = performance.now() + patienceMs;
      const before = line.last;
      let leave: () => void = () => undefined;
      line.last = new Promise((resolve) => {
        leave = resolve;
      });
      line.length += 1;
      lines.set(payer, line);
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
        if (line.length === 0) lines.delete(payer);
        leave();
      }
    },
  };
}
