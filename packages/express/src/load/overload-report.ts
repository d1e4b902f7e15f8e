import type { Load, LoadLimits } from "./load.ts";

/**
 * Paid requests were refused, because the process has taken on as much as its limits allow. The
 * message has the figures.
 */
export class OverloadWarning extends Error {
  override readonly name = "OverloadWarning";
}

/** Shortest time between two reports, in milliseconds. */
const quietMs = 60_000;

/** Counts a refusal, and reports those since the last report: at once, then once a minute. */
export function refuseLoad(
  load: Load,
  { maxPaidRequests, maxHeldBytes }: LoadLimits,
  onError: (error: unknown) => void,
  now = performance.now(),
): void {
  load.refusals += 1;
  const { at, refusals } = load.reported;
  if (now - at < quietMs) return;
  const count = load.refusals - refusals;
  load.reported = { at: now, refusals: load.refusals };
  onError(
    new OverloadWarning(
      `Overloaded: ${load.places} paid requests of at most ${maxPaidRequests} (maxPaidRequests) and ${load.heldBytes} bytes of at most ${maxHeldBytes} (maxHeldBytes) are under way. ${count} more got 503 since the last report`,
    ),
  );
}
