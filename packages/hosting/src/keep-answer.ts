/**
 * Caches an answer, or a failure, for a second and shares it among concurrent callers. A probe
 * without a key costs the same at any request rate.
 */
export function keepAnswer<Answer>(
  ask: () => Promise<Answer>,
  options: {
    keepMs?: number;
    /** Milliseconds of a clock that only goes forward. */
    now?: () => number;
  } = {},
): () => Promise<Answer> {
  const { keepMs = 1_000, now = () => performance.now() } = options;
  let kept: Promise<Answer> | undefined;
  let untilMs = 0;
  return function answer() {
    if (kept !== undefined && now() < untilMs) return kept;
    const asked = ask();
    const settle = () => {
      untilMs = now() + keepMs;
    };
    kept = asked;
    // No second read starts before the first has finished.
    untilMs = Number.POSITIVE_INFINITY;
    asked.then(settle, settle);
    return asked;
  };
}
