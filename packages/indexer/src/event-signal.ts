/** Tells listeners that there may be new events. */
export interface EventBell {
  ring(): void;
  /** Returns what ends the listening. */
  listen(listener: () => void): () => void;
}

/** On SQLite a writer in another process cannot notify; on PostgreSQL a notification may be lost. */
const RING_ANYWAY_MS = 1_000;

export function createEventBell(): EventBell {
  const listeners = new Set<() => void>();
  return {
    ring() {
      for (const listener of [...listeners]) listener();
    },
    listen(listener) {
      listeners.add(listener);
      const timer = setInterval(listener, RING_ANYWAY_MS);
      timer.unref();
      return () => {
        clearInterval(timer);
        listeners.delete(listener);
      };
    },
  };
}
