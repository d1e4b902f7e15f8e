import { createSingleFlight } from "@coinslot/concurrency";
import type { VisitBoard } from "@coinslot/protocol";
import { storeVisits } from "../ledger/maintenance/store-visits.ts";
import type { SettlementContext } from "../settle/context.ts";

/** Time from the first count to its row: what a killed process loses at most. */
export const visitsFlushMs = 10_000;

/**
 * Stores the counted visits: ten seconds after the first one, and at the end. Without visits there
 * is no timer and no statement. After a failed attempt the counts stay, for the next one.
 */
export function startVisits(
  { ledger, clock, logger }: Pick<SettlementContext, "ledger" | "clock" | "logger">,
  board: VisitBoard,
): { stop(): Promise<void> } {
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const storing = createSingleFlight(async () => {
    try {
      await storeVisits(ledger, board.tallies());
    } catch (err) {
      logger.warn({ err }, "counts of visits could not be stored; they wait for the next attempt");
    }
    if (!isStopped) board.whenCounted(waitForMore);
  });
  function waitForMore(): void {
    if (!isStopped) cancelTimer = clock.setTimer(storing.trigger, visitsFlushMs);
  }
  board.whenCounted(waitForMore);
  return {
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await storing.next().catch(() => undefined);
      await storing.stop();
    },
  };
}
