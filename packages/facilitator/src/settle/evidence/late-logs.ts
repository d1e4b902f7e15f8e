/**
 * Payments of one network that are used by the chain's state, and by no log that a node returns.
 */
export interface LateLogs {
  /** Whether their logs may still come. They are awaited from the first call on. */
  mayCome(paymentId: string): boolean;
}

/** Default time for which logs are awaited: longer than machines behind one URL lag. */
const defaultMs = 10_000;
/**
 * After this time, a payment is forgotten, and awaited once more. It is longer than any search: one
 * by slow nodes takes 15 minutes of each, and is made again while logs are awaited. An
 * authorization is used once, so logs that have not come by then come no more.
 */
const rememberedMs = 86_400_000;

/**
 * Creates a memory of payments whose logs are awaited. A token may use up authorizations without an
 * event, so none is awaited for long.
 */
export function createLateLogs(options: {
  /** Milliseconds. */
  now: () => number;
  /** Time for which logs are awaited. Default: ten seconds. */
  awaitedMs?: number;
}): LateLogs {
  const { now, awaitedMs = defaultMs } = options;
  /** Insertion order is age order. */
  const since = new Map<string, number>();
  return {
    mayCome(paymentId) {
      for (const [id, at] of since) {
        if (now() - at < rememberedMs) break;
        since.delete(id);
      }
      const from = since.get(paymentId) ?? now();
      since.set(paymentId, from);
      return now() - from < awaitedMs;
    },
  };
}
