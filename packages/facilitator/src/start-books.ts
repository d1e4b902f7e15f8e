import { createSingleFlight } from "@coinslot/concurrency";
import { postEarlier } from "./books/post-earlier.ts";
import type { SettlementContext } from "./settle/context.ts";

/** Pause after a step that left more, and after one that failed. */
const betweenStepsMs = 50;
const retryMs = 10_000;

/**
 * Posts the payments from before the books, in steps of a millisecond or two beside the traffic:
 * 5,000 payments a second. Nothing waits for it, but no period is closed before its end.
 */
export function startBooks({
  ledger,
  clock,
  logger,
}: Pick<SettlementContext, "ledger" | "clock" | "logger">): { stop(): Promise<void> } {
  let cancelTimer: (() => void) | undefined;
  let isStopped = false;
  const working = createSingleFlight(async () => {
    let pauseMs = betweenStepsMs;
    try {
      if (!(await postEarlier(ledger))) return;
    } catch (err) {
      pauseMs = retryMs;
      logger.warn({ err }, "earlier payments could not be posted to the books; retrying");
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
