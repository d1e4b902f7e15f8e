/** A task of which one run exists at a time. */
export interface SingleFlight {
  /** Runs the task, or, if it runs already, once more after that. */
  trigger(): void;
  /** Ends: nothing runs afterwards. Resolves when the last run is over. */
  stop(): Promise<void>;
}

/**
 * Creates a task with many callers that never runs concurrently with itself. `task` must not throw.
 */
export function createSingleFlight(task: () => Promise<void>): SingleFlight {
  let running: Promise<void> | undefined;
  let isWanted = false;
  let isStopped = false;

  async function runAll(): Promise<void> {
    while (isWanted && !isStopped) {
      isWanted = false;
      await task();
    }
    running = undefined;
  }

  return {
    trigger() {
      isWanted = true;
      if (!isStopped) running ??= runAll();
    },
    async stop() {
      isStopped = true;
      await running;
    },
  };
}
