import { createSingleFlight } from "@coinslot/concurrency";
import { buildIndex, type TableIndex } from "@coinslot/storage";
import { blockIndexes } from "./ledger/migrations/index-blocks.ts";
import { searchIndexes } from "./ledger/migrations/index-searches.ts";
import type { SettlementContext } from "./settle/context.ts";

/** Pause after a build that failed, or is another process's. */
const retryMs = 60_000;

/**
 * Builds the indexes that a migration could not build without a lock on a large table. It does so
 * beside the traffic, one after the other. Statements need them for their speed alone.
 */
export function startIndexBuilds({
  ledger,
  clock,
  logger,
}: Pick<SettlementContext, "ledger" | "clock" | "logger">): { stop(): Promise<void> } {
  const abort = new AbortController();
  const pending: TableIndex[] = [...blockIndexes, ...searchIndexes];
  let cancelTimer: (() => void) | undefined;

  const working = createSingleFlight(async () => {
    try {
      const { dialect, db: kysely } = ledger;
      for (let [index] = pending; index !== undefined; [index] = pending) {
        if (!(await buildIndex({ dialect, kysely }, index, abort.signal))) break;
        pending.shift();
      }
    } catch (err) {
      if (abort.signal.aborted) return;
      logger.warn({ err }, "an index of the ledger could not be built; retrying");
    }
    if (pending.length === 0 || abort.signal.aborted) return;
    cancelTimer = clock.setTimer(working.trigger, retryMs);
  });
  working.trigger();
  return {
    async stop() {
      abort.abort();
      cancelTimer?.();
      await working.stop();
      cancelTimer?.();
    },
  };
}
