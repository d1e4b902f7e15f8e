import { DatabaseError } from "./database-error.ts";

/** Releases the lock; the next in line gets it. */
export type Release = () => void;

/**
 * A lock within this process, first come first served. `acquire` waits up to `timeoutMs`, then
 * rejects with a `DatabaseError` of kind `busy`. The limit ends the self-deadlock of a query that
 * waits for its own transaction.
 */
export function createLock({ timeoutMs }: { timeoutMs: number }): { acquire(): Promise<Release> } {
  const waiting = new Set<(release: Release) => void>();
  let held = false;

  function pass(): void {
    const [next] = waiting;
    if (next === undefined) {
      held = false;
      return;
    }
    waiting.delete(next);
    next(pass);
  }

  return {
    acquire() {
      if (!held) {
        held = true;
        return Promise.resolve(pass);
      }
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(take);
          reject(
            new DatabaseError(
              "busy",
              `Another transaction has been writing for ${timeoutMs} ms. Inside a transaction, query with the handle that it is given.`,
            ),
          );
        }, timeoutMs);
        function take(release: Release): void {
          clearTimeout(timer);
          resolve(release);
        }
        waiting.add(take);
      });
    },
  };
}
