import { CallerGoneError, StoppedError } from "@coinslot/protocol";
import { answerRefusal } from "../answer.ts";
import { facilitatorFault } from "../refusals.ts";
import type { MatchedPayment } from "../sale.ts";

/**
 * Calls the facilitator before any money can move.
 *
 * @returns `undefined` when the facilitator was at fault (the request has been answered with 5xx),
 * or when the buyer has left.
 */
export async function askFacilitator<T>(
  { settings, response }: MatchedPayment,
  ask: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CallerGoneError) return undefined;
    if (!(error instanceof StoppedError)) settings.onError(error);
    answerRefusal(response, facilitatorFault(error));
    return undefined;
  }
}
