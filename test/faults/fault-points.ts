import type { Logger } from "@coinslot/facilitator";
import type { KillPoint, RunnerMessage } from "./worker-messages.ts";

/** The fault points of one worker. */
export interface FaultPoints {
  /** Follows an order of the runner. Returns false for another message. */
  obey(message: RunnerMessage): boolean;
  /**
   * Dies or stands still here if it is the time. Nothing that was begun is ended: the kernel takes
   * the process away, or stops it.
   */
  pass(point: string): void;
}

export function createFaultPoints(log: Logger): FaultPoints {
  let doom: { point: KillPoint; passes: number; signal: "SIGKILL" | "SIGSTOP" } | undefined;
  return {
    obey(message) {
      switch (message.type) {
        case "kill-at":
          doom = { point: message.point, passes: message.passes, signal: "SIGKILL" };
          return true;
        case "freeze-at":
          doom = { point: message.point, passes: message.passes, signal: "SIGSTOP" };
          return true;
        case "live":
          doom = undefined;
          return true;
        case "list-payments":
          return false;
      }
    },
    pass(point) {
      if (doom?.point !== point) return;
      const { signal } = doom;
      const passes = doom.passes - 1;
      doom = passes > 0 ? { ...doom, passes } : undefined;
      if (passes > 0) return;
      log.info({ point, signal }, "the seller is at its fault point");
      process.kill(process.pid, signal);
    },
  };
}
