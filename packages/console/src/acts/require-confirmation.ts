import { RefusedError, refusals } from "../api/refusal.ts";
import type { ConsoleContext } from "../context.ts";
import type { Session } from "../sessions/session.ts";
import { maxWrongConfirmations } from "./confirmations.ts";
import { fingerprintOf } from "./kept-acts.ts";
import { sizeOfRefund } from "./refund-size.ts";

/**
 * Asks for a confirmation where refunds are above the limit: alone, or with those that the session
 * has sent since its last one. Many small refunds would be a large one otherwise.
 *
 * @throws RefusedError where it is missing or wrong, or the session has ended: nothing was changed
 */
export async function requireConfirmation(
  { operator, settings, confirmations, sessions }: ConsoleContext,
  session: Session,
  asked: { operation: string; argument: unknown; presented: string | undefined },
): Promise<void> {
  const { operation, argument, presented } = asked;
  const size = await sizeOfRefund(operator, operation, argument);
  // The session may have ended while its body came, or by a wrong guess that was sent beside.
  if (!sessions.isOpen(session)) throw new RefusedError(refusals.signInNeeded);
  if (size === undefined) return;
  // From here on nothing waits: of two simultaneous refunds, the second one sees the first.
  const { micros, words } = size;
  if (micros !== undefined && session.refundedMicros + micros <= settings.confirmAboveMicros) {
    session.refundedMicros += micros;
    return;
  }
  const fingerprint = fingerprintOf({ operation, argument });
  const means = settings.key === undefined ? "code" : "key";
  switch (confirmations.check(session, { fingerprint, words, presented })) {
    case "confirmed":
      session.refundedMicros = 0n;
      return;
    case "needed":
      throw new RefusedError(refusals.confirmationNeeded(means, words));
    case "wrong": {
      const attemptsLeft = maxWrongConfirmations - session.wrongConfirmations;
      if (attemptsLeft <= 0) sessions.end(session);
      throw new RefusedError(refusals.wrongConfirmation(means, Math.max(attemptsLeft, 0)));
    }
  }
}
