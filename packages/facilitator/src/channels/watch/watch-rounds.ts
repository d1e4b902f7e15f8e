import type { Clock } from "@coinslot/chain";

/** Rounds of the watch of one process, one at a time. */
export interface WatchRounds {
  /**
   * A round. One that takes longer than 15 seconds goes on by itself: no claim waits for it. No
   * other begins until its end.
   *
   * @returns whether a round has ended well
   */
  round(): Promise<boolean>;
  /** Ends the round under way. Resolves when it is over. */
  stop(): Promise<void>;
}

/** A node that answers each request just in time takes hours for a round. */
const maxWaitMs = 15_000;

/**
 * @param watch one round. Returns whether it has ended well, and never rejects
 * @param options.onLate a round has ended after its time
 */
export function createWatchRounds(
  clock: Clock,
  watch: (signal: AbortSignal) => Promise<boolean>,
  { onLate }: { onLate: () => void },
): WatchRounds {
  const stopping = new AbortController();
  let running: Promise<boolean> | undefined;

  function begin(): Promise<boolean> {
    running = watch(stopping.signal).finally(() => {
      running = undefined;
    });
    return running;
  }

  return {
    async round() {
      if (running !== undefined) return false;
      const begun = begin();
      const time = withTime(clock);
      const isWell = await Promise.race([begun, time.isOver]).finally(time.cancel);
      if (isWell === undefined) void begun.then(onLate);
      return isWell ?? false;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function withTime(clock: Clock): { isOver: Promise<undefined>; cancel: () => void } {
  let cancel = () => {};
  const isOver = new Promise<undefined>((resolve) => {
    cancel = clock.setTimer(() => resolve(undefined), maxWaitMs);
  });
  return { isOver, cancel: () => cancel() };
}
