const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;

/** Waits between two attempts: three days in all. */
const delays = [
  5 * seconds,
  30 * seconds,
  2 * minutes,
  10 * minutes,
  30 * minutes,
  1 * hours,
  2 * hours,
  4 * hours,
  8 * hours,
  8 * hours,
  12 * hours,
  12 * hours,
  12 * hours,
  12 * hours,
];

/** Part of a wait by which it varies, so that failed deliveries do not come back all at once. */
const jitter = 0.2;

/** The longest wait between two attempts. */
export const maxRetryDelayMs = Math.max(...delays) * (1 + jitter);

/**
 * Wait after a failed attempt; `undefined` after the last one. Attempts are counted, and not the
 * time: a clock that jumps ends no delivery.
 *
 * @param attempts those that have failed, at least 1
 * @param random from 0 to 1
 */
export function retryDelayMs(attempts: number, random: number): number | undefined {
  const delay = delays[attempts - 1];
  return delay === undefined ? undefined : Math.round(delay * (1 + jitter * (2 * random - 1)));
}
