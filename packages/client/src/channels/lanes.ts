import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createKeyedMutex } from "@coinslot/concurrency";
import { tryFileLock } from "../budget/file-lock.ts";

/** A channel that this call alone uses, until its release. */
export interface HeldLane {
  /** Index among the offered ids. */
  index: number;
  release(): void;
}

/** Mutual exclusion over channels, among all processes that share a store. */
export interface Lanes {
  /**
   * Waits for the first free one of the channels, in the order of the calls of this process. The
   * kernel frees a channel whose process ends, however it ends.
   *
   * @throws the signal's reason when the caller aborts
   */
  acquire(ids: readonly [string, ...string[]], signal: AbortSignal | undefined): Promise<HeldLane>;
  /** Takes a channel that is free now; `undefined` where it is in use. */
  tryAcquire(id: string): Promise<HeldLane | undefined>;
}

/** Pause between two looks at locks of other processes. */
const minPauseMs = 5;
const maxPauseMs = 100;

/** Creates locks as files of a folder, which is made when it is needed. */
export function createLanes(folder: string): Lanes {
  const held = new Set<string>();
  const waiting = createKeyedMutex<string>();
  let freed = deferred();

  function wakeCalls(): void {
    freed.resolve();
    freed = deferred();
  }

  async function tryOne(id: string): Promise<(() => void) | undefined> {
    held.add(id);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const lock = await tryFileLock(join(folder, id));
      if (lock === undefined) {
        held.delete(id);
        return undefined;
      }
      return () => {
        lock.release();
        held.delete(id);
        wakeCalls();
      };
    } catch (error) {
      held.delete(id);
      throw error;
    }
  }

  return {
    async tryAcquire(id) {
      if (held.has(id)) return undefined;
      // A call that came meanwhile takes it for held here, and waits for its release.
      const release = await tryOne(id).finally(wakeCalls);
      return release && { index: 0, release };
    },
    acquire: (ids, signal) =>
      waiting.run(
        ids[0],
        async () => {
          for (let pauseMs = minPauseMs; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
            signal?.throwIfAborted();
            const next = freed.promise;
            const isOurs = ids.every((id) => held.has(id));
            for (const [index, id] of ids.entries()) {
              const release = held.has(id) ? undefined : await tryOne(id);
              if (release !== undefined) return { index, release };
            }
            // Nothing tells of a lock that another process has released.
            const stop = new AbortController();
            const signals = signal === undefined ? [stop.signal] : [stop.signal, signal];
            const pause = sleep(isOurs ? 2 ** 31 - 1 : pauseMs, undefined, {
              signal: AbortSignal.any(signals),
            });
            await Promise.race([next, pause.catch(() => undefined)]);
            stop.abort();
          }
        },
        signal,
      ),
  };
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
