/**
 * Group commit: makes one run of many calls. The next run takes the calls of one turn of the event
 * loop, and those made during a run. Idle, no call waits for others; busy, the runs grow with the
 * load.
 */
export function gather<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  options: { maxItems: number },
): (item: Item) => Promise<Result> {
  let waiting: {
    item: Item;
    resolve: (result: Result) => void;
    reject: (error: unknown) => void;
  }[] = [];
  let isRunning = false;

  function schedule(): void {
    if (isRunning || waiting.length === 0) return;
    isRunning = true;
    setImmediate(flush);
  }

  function flush(): void {
    const chunk = waiting.slice(0, options.maxItems);
    waiting = waiting.slice(options.maxItems);
    run(chunk.map(({ item }) => item))
      .then(
        (results) => {
          const outcome = results.values();
          for (const { resolve, reject } of chunk) {
            const { done, value } = outcome.next();
            if (!done) resolve(value);
            else reject(new TypeError("A run gave fewer results than it had items"));
          }
        },
        (error: unknown) => {
          for (const { reject } of chunk) reject(error);
        },
      )
      .finally(() => {
        isRunning = false;
        schedule();
      });
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      schedule();
    });
}
