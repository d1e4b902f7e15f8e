import type { SingleFlight } from "@coinslot/concurrency";
import type { SettlementContext } from "../context.ts";

/** The plan at the last moment for the next block. */
export interface FollowUp {
  /** By the process's clock; infinitely far where none is scheduled. */
  at: number;
  cancel: (() => void) | undefined;
}

/** Plans at this time, unless a plan is due before that. */
export function scheduleFollowUp(
  settlement: {
    context: Pick<SettlementContext, "clock">;
    planning: Pick<SingleFlight, "trigger">;
    followUp: FollowUp;
    isStopped: boolean;
  },
  at: number,
): void {
  const { followUp, planning, context, isStopped } = settlement;
  if (isStopped || followUp.at <= at) return;
  followUp.cancel?.();
  followUp.at = at;
  const delayMs = Math.max(0, at - context.clock.now());
  followUp.cancel = context.clock.setTimer(() => {
    followUp.at = Number.POSITIVE_INFINITY;
    planning.trigger();
  }, delayMs);
}
