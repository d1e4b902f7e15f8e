/** Runs the jobs with this concurrency; resolves to the total seconds. */
export async function timeConcurrently<T>(
  jobs: readonly T[],
  concurrency: number,
  run: (job: T) => Promise<void>,
): Promise<number> {
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let job = jobs[next++]; job !== undefined; job = jobs[next++]) await run(job);
    }),
  );
  return (performance.now() - started) / 1000;
}

/** Runs the jobs one after the other; resolves to the milliseconds that each took. */
export async function timeEach<T>(
  jobs: readonly T[],
  run: (job: T) => Promise<void>,
): Promise<number[]> {
  const times: number[] = [];
  for (const job of jobs) {
    const started = performance.now();
    await run(job);
    times.push(performance.now() - started);
  }
  return times;
}

/**
 * The value below which the given share of the values lies, between two of them where it falls
 * there: the median of an even number is the mean of its two middle ones.
 *
 * @param share from 0 to 1
 * @returns NaN of no values
 */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}
