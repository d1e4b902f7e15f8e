import { createSingleFlight } from "@coinslot/concurrency";
import { releaseAbandoned, sendHeartbeat } from "./ledger/maintenance/processes.ts";
import { dropExpiredAnswers } from "./ledger/payments/keep-answers.ts";
import type { SettlementContext } from "./settle/context.ts";

/**
 * Sends this process's heartbeat, retries its pending ends, ends the holdings of dead processes,
 * and drops expired answers. Reads the stop switches.
 */
export function startMaintenance(options: {
  context: Pick<SettlementContext, "ledger" | "notifier" | "clock" | "logger">;
  heartbeatLeaseMs: number;
  refreshStops: () => Promise<void>;
}): { stop(): Promise<void> } {
  const { heartbeatLeaseMs, refreshStops } = options;
  const { ledger, notifier, clock, logger } = options.context;
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const working = createSingleFlight(async () => {
    await refreshStops();
    try {
      const wasAlive = await sendHeartbeat(ledger);
      const { reserved, queued } = wasAlive
        ? await releaseAbandoned(ledger)
        : { reserved: 0, queued: [] };
      if (reserved + queued.length > 0) {
        logger.warn(
          { reserved, queued: queued.length },
          "payments of a dead process were released",
        );
      }
      // Their tokens were taken away.
      notifier.publish(
        queued.map((payment) => ({ ...payment, token: undefined, owner: undefined })),
      );
      await dropExpiredAnswers(ledger);
      await ledger.pendingEnds.retryPending();
    } catch (err) {
      logger.warn({ err }, "the heartbeat could not be written; retrying");
    }
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, heartbeatLeaseMs / 5);
  });
  working.trigger();
  return {
    async stop() {
      isStopped = true;
      cancelTimer?.();
      await working.stop();
      cancelTimer?.();
    },
  };
}
