/** Counts how often each payer let a handler run for nothing. */
export interface ReleaseLimit {
  isExceeded(payer: string): boolean;
  count(payer: string): void;
}

const minuteMs = 60_000;

/** A limit on free runs per payer and minute. It remembers no more than the payers of two minutes. */
export function createReleaseLimit(options: {
  perMinute: number;
  /** Unix milliseconds. */
  now: () => number;
}): ReleaseLimit {
  const { perMinute, now } = options;
  let minute = 0;
  let counts = new Map<string, number>();

  function currentCounts(): Map<string, number> {
    const current = Math.floor(now() / minuteMs);
    if (current !== minute) {
      minute = current;
      counts = new Map();
    }
    return counts;
  }

  return {
    isExceeded: (payer) => (currentCounts().get(payer) ?? 0) >= perMinute,
    count(payer) {
      const current = currentCounts();
      current.set(payer, (current.get(payer) ?? 0) + 1);
    },
  };
}
