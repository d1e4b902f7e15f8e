import type { ServerResponse } from "node:http";
import type { HeldOutcome, HeldResponse } from "./hold-response.ts";
import { whenGone } from "./when-gone.ts";

/** Outcome of the handler's run: its own end, or the end of the wait for it. */
export type HandlerOutcome =
  | HeldOutcome
  | { kind: "timed_out" }
  | { kind: "disconnected" }
  /**
   * A handler after the gate threw synchronously. Express catches that; other frameworks may not.
   */
  | { kind: "thrown"; error: unknown };

/** Runs the handler on a held response, until a timeout, and while the buyer is connected. */
export function runHandler(options: {
  response: ServerResponse;
  held: HeldResponse;
  /** Calls the handler. */
  next: () => void;
  timeoutSeconds: number;
  /** True if the run ends when the buyer leaves. */
  endsOnDisconnect: boolean;
}): Promise<HandlerOutcome> {
  const { response, held, next, timeoutSeconds, endsOnDisconnect } = options;
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish({ kind: "timed_out" }), timeoutSeconds * 1000);
    const stopWaiting = endsOnDisconnect
      ? whenGone(response, () => finish({ kind: "disconnected" }))
      : undefined;
    void held.outcome.then(finish);
    try {
      next();
    } catch (error) {
      finish({ kind: "thrown", error });
    }

    function finish(outcome: HandlerOutcome): void {
      clearTimeout(timer);
      stopWaiting?.();
      resolve(outcome);
    }
  });
}
