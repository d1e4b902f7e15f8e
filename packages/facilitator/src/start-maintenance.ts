import { createSingleFlight } from "@coinslot/concurrency";
import { type ForgetProgress, forgetPayments } from "./ledger/maintenance/forget-payments.ts";
import { releaseAbandoned, sendHeartbeat } from "./ledger/maintenance/processes.ts";
import { dropExpiredAnswers } from "./ledger/payments/keep-answers.ts";
import type { SettlementContext } from "./settle/context.ts";

/** Rows read in one step of forgetting: few enough to delay no writer. */
const forgottenAtOnce = 500;

/**
 * Sends this process's heartbeat, retries its pending ends, ends the holdings of dead processes,
 * and forgets expired rows.
 */
export function startMaintenance(options: {
  context: Pick<SettlementContext, "ledger" | "notifier" | "clock" | "now" | "logger">;
  heartbeatLeaseMs: number;
  /** Time for which ended payments are kept. `undefined`: for ever. */
  keepPaymentsMs: number | undefined;
}): { stop(): Promise<void> } {
  const { heartbeatLeaseMs, keepPaymentsMs } = options;
  const { ledger, notifier, clock, now, logger } = options.context;
  let progress: ForgetProgress = { afterPayment: "", afterTransaction: "" };
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const working = createSingleFlight(async () => {
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
      if (keepPaymentsMs !== undefined) {
        const before = now() - keepPaymentsMs;
        const step = await forgetPayments(ledger, { progress, before, limit: forgottenAtOnce });
        progress = step.progress;
      }
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
