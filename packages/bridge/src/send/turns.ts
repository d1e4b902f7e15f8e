import { createMutex, type Mutex } from "@coinslot/concurrency";

/** A queue of callers: runs one piece of work after the other, in the order of the calls. */
export interface Turns {
  /**
   * Rejects with the work's error, or with the signal's reason if that comes first. Then the work
   * is not begun.
   */
  take: Mutex["run"];
}

export function createTurns(): Turns {
  return { take: createMutex().run };
}
