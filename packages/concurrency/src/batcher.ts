export interface BatcherOptions {
  /** Most items of one run. */
  maxItems: number;
  /** Most runs at a time. Default 1. */
  maxConcurrent?: number | undefined;
  /** Milliseconds after a run until the next one that is not full. Default 0. */
  pauseMs?: ((run: { tookMs: number; items: number }) => number) | undefined;
}

/** Runs after the I/O of this turn, so that calls which arrived together run together. */
const afterThisTurn: (run: () => void) => void =
  typeof setImmediate === "function" ? setImmediate : queueMicrotask;

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

/**
 * Makes one run of many calls. A run takes the calls of one turn of the event loop. While
 * `maxConcurrent` runs are under way, further calls gather. So a call waits for no other when idle,
 * and runs grow with the load.
 *
 * With a pause, calls gather for that time after a run, too, until they fill the next one. A call
 * that comes later does not wait.
 *
 * `run` returns one result for each item, in their order. An `Error` as a result rejects that item
 * alone; an error that `run` throws rejects all its items.
 *
 * ```text
 *            call               end of the turn             end of the run
 *   idle ──────────► scheduled ────────────────► running ──┬──────────────► idle
 *                        ▲                                 │
 *                        └───── end of a run, calls wait ──┘
 * ```
 *
 * | Race | Why it is safe |
 * |---|---|
 * | A call between the scheduling and the run | The run takes what waits when it begins |
 * | A call during a run that it might have joined | It waits for the next run: a run's items never change |
 * | Runs that end in another order than they began | Each answers its own items |
 */
export function createBatcher<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly (Result | Error)[]>,
  { maxItems, maxConcurrent = 1, pauseMs = () => 0 }: BatcherOptions,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let underWay = 0;
  let isScheduled = false;
  let pausesUntil = 0;
  /** The end of the pause, where calls wait for it. */
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** Runs what waits, though the pause is not over. */
  function endPause(): void {
    clearTimeout(timer);
    timer = undefined;
    afterThisTurn(flush);
  }

  function schedule(): void {
    if (isScheduled || waiting.length === 0 || underWay >= maxConcurrent) return;
    isScheduled = true;
    const leftMs = pausesUntil - performance.now();
    if (leftMs > 0 && waiting.length < maxItems) timer = setTimeout(flush, leftMs);
    else afterThisTurn(flush);
  }

  function flush(): void {
    isScheduled = false;
    timer = undefined;
    while (waiting.length > 0 && underWay < maxConcurrent) {
      const batch = waiting;
      waiting = batch.length > maxItems ? batch.splice(maxItems) : [];
      underWay += 1;
      void runBatch(batch);
    }
  }

  async function runBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const startedAt = performance.now();
    try {
      const results = (await run(batch.map(({ item }) => item))).values();
      for (const { resolve, reject } of batch) {
        const { done, value } = results.next();
        if (done) reject(new TypeError("A run gave fewer results than it had items"));
        else if (value instanceof Error) reject(value);
        else resolve(value);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    underWay -= 1;
    const endedAt = performance.now();
    pausesUntil = endedAt + pauseMs({ tookMs: endedAt - startedAt, items: batch.length });
    schedule();
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (timer !== undefined && waiting.length >= maxItems) endPause();
      else schedule();
    });
}
