import type { BookRange } from "@coinslot/facilitator";
import { type Command, InvalidArgumentError } from "commander";

/** Options that select a time of the books: whole days, in UTC. */
export interface RangeOptions {
  from?: number;
  to?: number;
}

/** Later than every entry. */
const endOfTime = 8_640_000_000_000_000;

/** Adds `--from` and `--to`. */
export function addRangeOptions(command: Command): Command {
  return command
    .option("--from <day>", "only since the begin of this day, in UTC: 2026-11-01", readDay)
    .option("--to <day>", "only before the begin of this day: 2026-12-01", readDay);
}

export function toRange({ from = 0, to = endOfTime }: RangeOptions): BookRange {
  return { from, before: to };
}

/** Unix milliseconds of the begin of a day in UTC. */
export function readDay(text: string): number {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time) && formatDay(time) === text) return time;
  throw new InvalidArgumentError("expected a day such as 2026-11-01");
}

/** The day of a time, in UTC. */
export function formatDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
