/** A task of which one run exists at a time for each key. */
export interface KeyedSingleFlight<Key, Result = void> {
  /** As `next` of a single flight, among the callers with the same key. */
  next(key: Key): Promise<Result>;
}

/**
 * Creates a keyed single flight. A key costs memory while it has a run, and no more than a run
 * needs. A caller with a key of its own makes no single flight of its own.
 */
export function createKeyedSingleFlight<Key, Result = void>(
  task: (key: Key) => Promise<Result>,
): KeyedSingleFlight<Key, Result> {
  const running = new Map<Key, Promise<Result>>();
  const due = new Map<Key, Promise<Result>>();

  function start(key: Key): Promise<Result> {
    const run = task(key).finally(() => running.delete(key));
    running.set(key, run);
    return run;
  }

  return {
    next(key) {
      const shared = due.get(key);
      if (shared !== undefined) return shared;
      const current = running.get(key);
      if (current === undefined) return start(key);
      const startDue = () => {
        due.delete(key);
        return start(key);
      };
      const run = current.then(startDue, startDue);
      due.set(key, run);
      return run;
    },
  };
}
