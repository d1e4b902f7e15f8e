/** A task of which one run exists at a time for each key. */
export interface KeyedSingleFlight<Key> {
  /** As `next` of a single flight, among the callers with the same key. */
  next(key: Key): Promise<void>;
}

/**
 * Creates a keyed single flight. A key costs memory while it has a run, and no more than a run
 * needs. A caller with a key of its own makes no single flight of its own.
 */
export function createKeyedSingleFlight<Key>(
  task: (key: Key) => Promise<void>,
): KeyedSingleFlight<Key> {
  const running = new Map<Key, Promise<void>>();
  const due = new Map<Key, Promise<void>>();

  function start(key: Key): Promise<void> {
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
