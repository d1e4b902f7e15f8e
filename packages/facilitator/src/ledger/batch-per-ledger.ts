import { type BatcherOptions, createBatcher } from "@coinslot/concurrency";
import type { LedgerContext } from "./ledger-context.ts";

/**
 * Group commit: makes one run of many calls with one ledger, by a batcher for each ledger. Idle, no
 * call waits for others; busy, the runs grow with the load.
 *
 * Processes that share a database take turns: after a run, each leaves the time for one of every
 * other process. So a fleet makes about as many runs as one process would, and calls wait for a few
 * milliseconds more. A database that is slow with its load makes them wait longer, and has less of
 * it.
 *
 * The storage writer groups transactions, and only on SQLite. This groups statements, on both
 * engines: the items of a run share each of its statements.
 */
export function batchPerLedger<Ledger extends Pick<LedgerContext, "heartbeat">, Item, Result>(
  run: (ledger: Ledger, items: readonly Item[]) => Promise<readonly Result[]>,
  options: Pick<BatcherOptions, "maxItems">,
): (ledger: Ledger, item: Item) => Promise<Result> {
  const batchers = new WeakMap<Ledger, (item: Item) => Promise<Result>>();
  return (ledger, item) => {
    let batcher = batchers.get(ledger);
    if (batcher === undefined) {
      batcher = createBatcher((items: readonly Item[]) => run(ledger, items), {
        ...options,
        pauseMs: (last) => pauseAfter(ledger, last),
      });
      batchers.set(ledger, batcher);
    }
    return batcher(item);
  };
}

/** Bounds one statement's parameters, and the time for which it holds its locks. */
export const maxAtOnce = 250;

/** Longest pause, however slow the database is. */
const maxPauseMs = 100;

/**
 * After a run, the database has time for a run of each other process: of as many as the run had
 * further items. A run of one saved no statement, and the next call is likely to be alone, too.
 */
export function pauseAfter(
  { heartbeat }: { heartbeat: Pick<LedgerContext["heartbeat"], "living"> },
  { tookMs, items }: { tookMs: number; items: number },
): number {
  const others = heartbeat.living.length - 1;
  return Math.min(Math.min(others, items - 1) * tookMs, maxPauseMs);
}
