import type { Segment } from "./plan-segments.ts";
import type { RangeReader } from "./range-reader.ts";
import type { RangeSize } from "./range-size.ts";
import type { RangeAnswer } from "./read-range.ts";

/**
 * The answers of a segment in ascending order, with several requests under way. While one is
 * written, the next are read. A slow writer does not make it hold more than that in memory.
 */
export async function* scanSegment(
  { tokens, from, next }: Segment,
  options: { read: RangeReader; size: RangeSize; requestsInFlight: number; signal: AbortSignal },
): AsyncGenerator<RangeAnswer, void, void> {
  const { read, size, requestsInFlight, signal } = options;
  // Ends the requests under way when the caller leaves the loop, for any reason.
  const leaving = new AbortController();
  const leave = () => leaving.abort(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  const underWay: Promise<RangeAnswer[]>[] = [];
  let start = from;
  try {
    while (start < next || underWay.length > 0) {
      signal.throwIfAborted();
      while (start < next && underWay.length < (size.isKnown() ? requestsInFlight : 1)) {
        const range = { tokens, from: start, next: Math.min(next, start + size.span()) };
        const reading = read(range, leaving.signal);
        // The failure is handled in its turn.
        reading.catch(() => undefined);
        underWay.push(reading);
        start = range.next;
      }
      yield* (await underWay.shift()) ?? [];
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leaving.abort(new Error("The scan has ended"));
  }
}
