import type { Clock } from "@coinslot/chain";

/**
 * Calls `onOverdue` in intervals with the ids that have been waited for since the last call, at
 * least. A younger wait is no sign of a lost message, unless its payment may have ended before it
 * began. So a busy process, whose payments take less than an interval, reads nothing.
 *
 * @returns a function that ends the polls
 */
export function pollWaits(options: {
  clock: Pick<Clock, "setTimer">;
  pollMs: number;
  waiting: () => Iterable<string>;
  /** True if the payment may have ended before its wait began. */
  mayHaveEnded: (id: string) => boolean;
  onOverdue: (ids: readonly string[]) => void;
}): () => void {
  const { clock, pollMs, waiting, mayHaveEnded, onOverdue } = options;
  let before: ReadonlySet<string> = new Set();
  let cancel = clock.setTimer(poll, pollMs);

  function poll(): void {
    const current = new Set(waiting());
    onOverdue([...current].filter((id) => before.has(id) || mayHaveEnded(id)));
    before = current;
    cancel = clock.setTimer(poll, pollMs);
  }

  return () => cancel();
}
