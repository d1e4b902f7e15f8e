import { CallerGoneError, CallerLimitedError, StoppedError } from "@coinslot/protocol";
import { refuseVisit } from "../answer.ts";
import { facilitatorFault } from "../refusals.ts";
import type { Visit } from "../sale.ts";

/**
 * Calls the facilitator before any money can move.
 *
 * @returns `undefined` when the facilitator was at fault (the request has been answered with 5xx),
 * or when the buyer has left.
 */
export async function askFacilitator<T>(
  order: Visit,
  ask: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CallerGoneError) return undefined;
    // A flood of forged payments would fill the log. Its refusals are counted.
    const isFault = !(error instanceof StoppedError || error instanceof CallerLimitedError);
    if (isFault) order.settings.onError(error);
    refuseVisit(order, facilitatorFault(error));
    return undefined;
  }
}
