import type { ForgetProgress } from "./ledger/maintenance/forget-payments.ts";
import type { SettlementContext } from "./settle/context.ts";
import { createSingleFlight } from "./settle/single-flight.ts";

/** Looked at in one step of forgetting: of no consequence for whoever wants to write meanwhile. */
const forgottenAtOnce = 500;

/** Says that this process lives, ends what it owes and what those left that do not, and forgets what is over. */
export function startMaintenance(options: {
  context: SettlementContext;
  heartbeatLeaseMs: number;
  /** How long payments are kept that have ended; `undefined`: for ever. */
  keepPaymentsMs: number | undefined;
}): { stop(): Promise<void> } {
  const { heartbeatLeaseMs, keepPaymentsMs } = options;
  const { ledger, board, clock, now, logger } = options.context;
  let progress: ForgetProgress = { afterPayment: "", afterTransaction: "" };
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const working = createSingleFlight(async () => {
    try {
      await ledger.sendHeartbeat();
      const { reserved, queued } = await ledger.releaseAbandoned();
      if (reserved + queued.length > 0) {
        logger.warn(
          { reserved, queued: queued.length },
          "payments of a dead process were released",
        );
      }
      board.publish(queued);
      await ledger.dropExpiredAnswers();
      if (keepPaymentsMs !== undefined) {
        const before = now() - keepPaymentsMs;
        const step = await ledger.forgetPayments({ progress, before, limit: forgottenAtOnce });
        progress = step.progress;
      }
      await ledger.retryPending();
    } catch (err) {
      logger.warn({ err }, "the heartbeat could not be written; it is tried again");
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
