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
 * After so many times that time, a payment is forgotten, and awaited once more. The search for ends
 * waits a minute, and takes 20 minutes.
 */
const rememberedTimes = 60;

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
        if (now() - at < rememberedTimes * awaitedMs) break;
        since.delete(id);
      }
      const from = since.get(paymentId) ?? now();
      since.set(paymentId, from);
      return now() - from < awaitedMs;
    },
  };
}
