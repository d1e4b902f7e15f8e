/** Work beside the traffic: one task after another. */
export interface LookQueue {
  /** Adds a task; beyond the bound it is left out. */
  add(task: () => Promise<void>): void;
  /** Resolves when no task waits. */
  settled(): Promise<void>;
}

/** Tasks that may wait; a flood of payments must not stop the proxy. */
const maxWaiting = 200;

/** A queue whose failed tasks are without effect. */
export function createLookQueue(): LookQueue {
  let waiting = 0;
  let work: Promise<void> = Promise.resolve();
  return {
    add(task) {
      if (waiting >= maxWaiting) return;
      waiting += 1;
      const done = () => {
        waiting -= 1;
      };
      work = work.then(task).then(done, done);
    },
    async settled() {
      let seen: Promise<void> | undefined;
      while (seen !== work) {
        seen = work;
        await seen;
      }
    },
  };
}
