import type { ServerResponse } from "node:http";
import type { HeldOutcome, HeldResponse } from "./hold-response.ts";
import { whenGone } from "./when-gone.ts";

/** How the handler's run ended: by itself, or because nobody waits for it any longer. */
export type HandlerOutcome =
  | HeldOutcome
  | { kind: "timed_out" }
  | { kind: "disconnected" }
  /** What comes after the gate has thrown at it. Express catches that, but not everybody uses Express. */
  | { kind: "thrown"; error: unknown };

/** Lets the handler run on a held response, for so long, and while there is somebody to answer. */
export function runHandler(options: {
  response: ServerResponse;
  held: HeldResponse;
  /** Calls the handler. */
  next: () => void;
  timeoutSeconds: number;
  /** Whether to give up when the buyer leaves. */
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
