import { type BatcherOptions, createBatcher } from "@coinslot/concurrency";

/**
 * Group commit: makes one run of many calls with one ledger, by a batcher for each ledger. Idle, no
 * call waits for others; busy, the runs grow with the load.
 *
 * The storage writer groups transactions, and only on SQLite. This groups statements, on both
 * engines: the items of a run share each of its statements.
 */
export function batchPerLedger<Ledger extends object, Item, Result>(
  run: (ledger: Ledger, items: readonly Item[]) => Promise<readonly Result[]>,
  options: BatcherOptions,
): (ledger: Ledger, item: Item) => Promise<Result> {
  const batchers = new WeakMap<Ledger, (item: Item) => Promise<Result>>();
  return (ledger, item) => {
    let batcher = batchers.get(ledger);
    if (batcher === undefined) {
      batcher = createBatcher((items: readonly Item[]) => run(ledger, items), options);
      batchers.set(ledger, batcher);
    }
    return batcher(item);
  };
}

/** Bounds one statement's parameters, and the time for which it holds its locks. */
export const maxAtOnce = 250;
