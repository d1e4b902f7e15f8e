/** Signals listeners that there may be new events. */
export interface EventSignal {
  ring(): void;
  /** Returns a function that ends the listening. */
  listen(listener: () => void): () => void;
}

/**
 * On SQLite a writer in another process cannot notify; on PostgreSQL a notification may be lost.
 */
const ringAnywayMs = 1_000;

export function createEventSignal(): EventSignal {
  const listeners = new Set<() => void>();
  return {
    ring() {
      for (const listener of [...listeners]) listener();
    },
    listen(listener) {
      listeners.add(listener);
      const timer = setInterval(listener, ringAnywayMs);
      timer.unref();
      return () => {
        clearInterval(timer);
        listeners.delete(listener);
      };
    },
  };
}
