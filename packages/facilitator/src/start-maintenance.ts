import { createSingleFlight } from "@coinslot/concurrency";
import { type DatabaseError, isDatabaseError } from "@coinslot/storage";
import {
  isFirstProcess,
  LedgerRestoredError,
  releaseAbandoned,
  sendHeartbeat,
} from "./ledger/maintenance/processes.ts";
import { dropExpiredAnswers } from "./ledger/payments/keep-answers.ts";
import type { LedgerHealth } from "./ready/ledger-health.ts";
import type { SettlementContext } from "./settle/context.ts";

/**
 * Reads the stop switches, sends this process's heartbeat, and retries its pending ends. The
 * heartbeat shows whether the ledger can be written, and whether it is still the same one. The
 * first process of a ledger also ends the holdings of dead processes, and drops expired answers.
 * Where that one dies or freezes, the next one does so once its heartbeat is too old. Holdings of
 * another dead process then wait for as long again; a buyer who repeats its request does not.
 */
export function startMaintenance(options: {
  context: Pick<SettlementContext, "ledger" | "notifier" | "clock" | "logger">;
  heartbeatLeaseMs: number;
  refreshStops: () => Promise<void>;
  health: Pick<LedgerHealth, "failed" | "wrote">;
  /** As `Database.verify`. */
  verify: () => Promise<void>;
  /** Called once if the ledger is not the one any more that was opened. No more work is done. */
  onReplaced: (reason: unknown) => void;
}): { stop(): Promise<void> } {
  const { heartbeatLeaseMs, refreshStops, health, verify, onReplaced } = options;
  const { ledger, notifier, clock, logger } = options.context;
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const working = createSingleFlight(async () => {
    // Beside the heartbeat: a read that hangs must not make this process count as dead.
    void refreshStops();
    try {
      const fault = await verify().catch(asDatabaseError);
      if (fault !== undefined) return leave(fault);
      await sendHeartbeat(ledger);
      health.wrote();
      const isFirst = isFirstProcess(ledger);
      const { reserved, queued } = isFirst
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
      await dropExpiredAnswers(ledger, { fromTable: isFirst });
      await ledger.pendingEnds.retryPending();
    } catch (err) {
      if (err instanceof LedgerRestoredError) return leave(err);
      health.failed(err, "the heartbeat could not be written; retrying");
    }
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, heartbeatLeaseMs / 5);
  });
  function leave(reason: unknown): void {
    isStopped = true;
    onReplaced(reason);
  }

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

function asDatabaseError(error: unknown): DatabaseError {
  if (isDatabaseError(error)) return error;
  throw error;
}
