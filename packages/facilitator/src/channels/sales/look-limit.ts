import { createRunLimit } from "./run-limit.ts";

/** Looks at the chain for channels that this process has not seen, limited by caller. */
export interface LookLimit {
  /**
   * Begins a look. It counts before it ends, or a burst would pass the limit. So it waits where
   * those of the caller that are under way may use the limit up.
   *
   * @returns `end`, to be called once; or the milliseconds until the caller may come again
   */
  begin(
    key: string,
  ): Promise<{ end: (look: { isAbsent: boolean }) => void } | { limitedMs: number }>;
  /** Takes one channel without money back: its money is on its way. */
  giveBack(key: string): void;
}

interface UnderWay {
  count: number;
  /** Resolves with the end of one of them. */
  next: Deferred;
}

interface Deferred {
  promise: Promise<void>;
  resolve: () => void;
}

/** Creates the limit: this many channels without money in a minute, of each caller. */
export function createLookLimit({ now }: { now: () => number }): LookLimit {
  const absences = createRunLimit({
    limit: { count: 30, windowMs: 60_000, shareOfPaid: 0 },
    now,
  });
  const underWay = new Map<string, UnderWay>();

  function end(key: string, { isAbsent }: { isAbsent: boolean }): void {
    if (!isAbsent) absences.giveBack(key);
    const looks = underWay.get(key);
    if (looks === undefined) return;
    looks.count -= 1;
    if (looks.count === 0) underWay.delete(key);
    const { resolve } = looks.next;
    looks.next = createDeferred();
    resolve();
  }

  return {
    giveBack: absences.giveBack,
    async begin(key) {
      for (;;) {
        const limitedMs = absences.limitOf(key);
        const looks = underWay.get(key);
        if (limitedMs === undefined) {
          absences.count(key);
          if (looks === undefined) underWay.set(key, { count: 1, next: createDeferred() });
          else looks.count += 1;
          return { end: (look) => end(key, look) };
        }
        if (looks === undefined) return { limitedMs };
        await looks.next.promise;
      }
    },
  };
}

function createDeferred(): Deferred {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
