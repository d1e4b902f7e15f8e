import type { Hex, Payment, SettleResponse } from "@coinslot/protocol";
import { isReservationHeld } from "../ledger/maintenance/reservation-held.ts";
import { deliverPayment } from "../ledger/payments/deliver-payments.ts";
import type { QueuedPayment } from "../ledger/payments/enqueue-payments.ts";
import type { LedgerPayment, PaymentStanding } from "../ledger/payments/ledger-payment.ts";
import { releasePayment } from "../ledger/payments/release-payment.ts";
import type { OrderedPayment } from "../ledger/queries/find-orders.ts";
import { findHashes } from "../ledger/transactions/find-transactions.ts";
import { schemeOf } from "../schemes/registry.ts";
import { planQueued, planResumed } from "./fleet/plan-payments.ts";
import { hasOutcome } from "./has-outcome.ts";
import { type StandingPayment, settleResponseOf } from "./settle-response.ts";
import type { SettlingContext } from "./settling-context.ts";
import { reservationLost } from "./unavailable-errors.ts";

/** Waits as the holder of the token, and records that the outcome was returned. */
export async function conclude(
  settling: SettlingContext,
  options: { payment: Payment; known: QueuedPayment | LedgerPayment; token: string },
): Promise<SettleResponse> {
  const { ledger, logger } = settling.context;
  const { payment, known, token } = options;
  const { payer } = payment.id;
  let outcome: StandingPayment | undefined;
  try {
    const concluded = await awaitOutcome(settling, { known, payment, token });
    if (!(await isReservationHeld(ledger, { id: payment.id, token }))) throw reservationLost();
    // Not before: a fault above returns no outcome, and the same call must be able to ask again.
    outcome = concluded;
    const response = settleResponseOf(outcome);
    if (response.success) settling.verifier.prove(payment);
    return response;
  } finally {
    const end =
      outcome?.payment.state === "confirmed"
        ? deliverPayment(ledger, token)
        : releasePayment(ledger, { token, payer, countsAgainstPayer: false });
    // Written later, it does not change the response.
    await end.catch((err: unknown) => {
      logger.warn({ err, ...payment.id }, "the end of a settlement could not be recorded yet");
    });
  }
}

/**
 * Waits until the payment has an outcome, or the time is over.
 *
 * @param options `token`: of the caller's reservation. Without one, the outcome may be of a later
 * reservation for another request
 * @throws FacilitatorError, when the reservation was lost meanwhile.
 */
export async function awaitOutcome(
  settling: SettlingContext,
  options: {
    known: QueuedPayment | LedgerPayment;
    payment: Payment | undefined;
    token: string | undefined;
  },
): Promise<StandingPayment> {
  const { known, payment, token } = options;
  const { context, settlements, timeoutMs } = settling;
  const { notifier, metrics } = context;
  const isNew = !("authorization" in known);
  if (!isNew && hasOutcome(known)) return { payment: known, hash: undefined };
  const startedAt = performance.now();
  const network = isNew ? payment?.network : known.authorization.network;
  notifier.follow(known.id);
  const waiting = notifier.wait(known.id, {
    token,
    timeoutMs: timeoutMs(network, known),
    isResumed: !isNew,
  });
  const settlement = payment && settlements.get(payment.network);
  if (settlement && isNew) planQueued(settlement, orderedPayment(known, payment));
  // Without a token another request holds it, and the process of that one settles it.
  else if (settlement && token !== undefined && !isNew && known.state === "queued") {
    planResumed(settlement, known.id);
  }
  const concluded = await waiting;
  metrics.settleSeconds(startedAt);
  if (concluded === undefined) throw reservationLost();
  return { payment: concluded, hash: await findHash(settling, concluded) };
}

/** The hash of a payment's transaction: the one in a block, or the newest that was signed. */
export async function findHash(
  { context }: SettlingContext,
  { inclusion, transactionId }: PaymentStanding,
): Promise<Hex | undefined> {
  if (inclusion || transactionId === undefined) return inclusion?.transactionHash;
  const [newest] = await findHashes(context.ledger, transactionId);
  return newest;
}

/** The operation of a payment that has just been queued here. No read of the ledger is needed. */
function orderedPayment(queued: QueuedPayment, payment: Payment): OrderedPayment {
  return {
    payment: {
      kind: payment.kind,
      authorization: payment.id,
      transactionId: undefined,
      inclusion: undefined,
      ...queued,
    },
    order: schemeOf(payment).commit(payment),
  };
}
