import { createSingleFlight } from "@coinslot/concurrency";
import { foldCharges } from "./ledger/maintenance/fold-charges.ts";
import { sumPayments } from "./ledger/maintenance/sum-payments.ts";
import type { SettlementContext } from "./settle/context.ts";

/** Pause after a step that came to the end, and after one that did not. */
const restMs = 10_000;
const betweenStepsMs = 50;

/**
 * Keeps the sums by day, in steps of a millisecond or two beside the traffic. A ledger from before
 * the sums is summed at 5,000 payments and charges a second; nothing waits for it.
 */
export function startSums({
  ledger,
  clock,
  logger,
}: Pick<SettlementContext, "ledger" | "clock" | "logger">): { stop(): Promise<void> } {
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const working = createSingleFlight(async () => {
    let pauseMs = restMs;
    try {
      const steps = [await sumPayments(ledger), await foldCharges(ledger)];
      if (steps.includes(true)) pauseMs = betweenStepsMs;
    } catch (err) {
      logger.warn({ err }, "payments or charges could not be added to the sums by day; retrying");
    }
    if (!isStopped) cancelTimer = clock.setTimer(working.trigger, pauseMs);
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
