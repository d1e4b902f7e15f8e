/**
 * Group commit: makes one run of many calls with one ledger. The next run takes the calls of one
 * turn of the event loop, and those made during a run. Idle, no call waits for others; busy, the
 * runs grow with the load.
 *
 * The storage writer groups transactions, and only on SQLite. This groups statements, on both
 * engines: the items of a run share each of its statements.
 */
export function gather<Ledger extends object, Item, Result>(
  run: (ledger: Ledger, items: readonly Item[]) => Promise<readonly Result[]>,
  options: { maxItems: number },
): (ledger: Ledger, item: Item) => Promise<Result> {
  const groups = new WeakMap<Ledger, Group<Item, Result>>();

  function schedule(ledger: Ledger, group: Group<Item, Result>): void {
    if (group.isRunning || group.waiting.length === 0) return;
    group.isRunning = true;
    setImmediate(flush, ledger, group);
  }

  function flush(ledger: Ledger, group: Group<Item, Result>): void {
    const chunk = group.waiting.slice(0, options.maxItems);
    group.waiting = group.waiting.slice(options.maxItems);
    run(
      ledger,
      chunk.map(({ item }) => item),
    )
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
        group.isRunning = false;
        schedule(ledger, group);
      });
  }

  return (ledger, item) =>
    new Promise((resolve, reject) => {
      let group = groups.get(ledger);
      if (group === undefined) {
        group = { waiting: [], isRunning: false };
        groups.set(ledger, group);
      }
      group.waiting.push({ item, resolve, reject });
      schedule(ledger, group);
    });
}

/** The calls with one ledger. */
interface Group<Item, Result> {
  waiting: {
    item: Item;
    resolve: (result: Result) => void;
    reject: (error: unknown) => void;
  }[];
  isRunning: boolean;
}

/** Bounds one statement's parameters, and the time for which it holds its locks. */
export const maxAtOnce = 250;
