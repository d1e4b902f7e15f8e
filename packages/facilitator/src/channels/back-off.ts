/** Subjects that rest after failed attempts, by id. Times are of the monotonic clock. */
export type Rests<Id extends string> = Map<Id, { until: number; attempts: number }>;

/** First rest of a subject. */
export const firstRestMs = 5_000;
/** Longest rest of a subject. */
export const maxRestMs = 600_000;

/** Lets a subject rest. Each attempt doubles the rest, up to `maxMs`. */
export function backOff<Id extends string>(
  rests: Rests<Id>,
  id: Id,
  { now, maxMs = maxRestMs }: { now: number; maxMs?: number },
): void {
  const { attempts = 0 } = rests.get(id) ?? {};
  const restMs = Math.min(maxMs, firstRestMs * 2 ** Math.min(attempts, 10));
  rests.set(id, { until: now + restMs, attempts: attempts + 1 });
}
