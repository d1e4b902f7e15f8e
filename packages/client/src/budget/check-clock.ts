import type { ChainReader } from "../chain/chain-reader.ts";
import { PaymentError } from "../payment-error.ts";

/** Largest difference between a correct clock and a healthy chain. */
const toleranceMs = 3_600_000;

/**
 * Compares the clock with the chains. One chain that agrees is enough. A chain may stand still, and
 * a lying node cannot move this machine's clock, too.
 *
 * @returns the time, in unix milliseconds, or `undefined` when no chain returned its own
 * @throws PaymentError `clock_wrong` when the chains contradict the clock
 */
export async function checkClock(options: {
  now: () => number;
  readTimes: ChainReader["readTimes"];
}): Promise<number | undefined> {
  const times = await options.readTimes();
  const now = options.now();
  const near = times.filter((time) => Math.abs(time - now) <= toleranceMs);
  // The earlier of the two, since it decides which bookings are freed.
  if (near.length > 0) return Math.min(now, Math.max(...near));
  const [time] = times;
  if (time === undefined) return undefined;
  // A node may name any time; a date ends here.
  const show = (at: number) => new Date(Math.min(at, 8_640_000_000_000_000)).toISOString();
  throw new PaymentError(
    "clock_wrong",
    `The clock of this machine is at ${show(now)}, the chain's at ${show(time)}; nothing is paid until they agree, since the budget counts by the day`,
  );
}
