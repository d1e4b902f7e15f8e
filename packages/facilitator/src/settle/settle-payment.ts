import {
  type AnyPaymentPayload,
  type AnyPaymentRequirements,
  authorizationKey,
  type Payment,
  type Reservation,
  type SealedAnswer,
  type SettleOptions,
  type SettleResponse,
} from "@coinslot/protocol";
import { countRun } from "../ledger/payments/count-run.ts";
import { enqueuePayment } from "../ledger/payments/enqueue-payments.ts";
import type { LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import type { ReserveResult } from "../ledger/payments/reserve-request.ts";
import { lookUpPayment } from "../ledger/queries/look-up-payments.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { Verdict } from "../verify/verdict.ts";
import { admitPayment } from "./admit-payment.ts";
import { awaitOutcome, conclude, findHash } from "./await-outcome.ts";
import { canPay } from "./can-pay.ts";
import { recallPayment, repeatPayment } from "./recall-payment.ts";
import { toRefusedSettlement } from "./reserved.ts";
import { keyHashOf, paymentOf, settleFingerprint } from "./settle-request.ts";
import { duplicateResponse, refusedResponse, settleResponseOf } from "./settle-response.ts";
import type { SettlingContext } from "./settling-context.ts";
import { outOfGasMoney, reservationLost } from "./unavailable-errors.ts";

/**
 * Settles a payment by way of the ledger's queue, and returns its outcome.
 *
 * 1. Verified, reserved and queued here, or by the reservation of its handler.
 * 2. Planned into a transaction (`plan/planner.ts`), sent and followed (`relay/`).
 * 3. Proven (`evidence/`), made final or taken back (`watch/`).
 *
 * The outcome notifier ends the wait.
 *
 * @throws FacilitatorError, DatabaseError: the outcome is unknown, the payment may be settled.
 */
export async function settlePayment(
  settling: SettlingContext,
  payload: AnyPaymentPayload,
  requirements: AnyPaymentRequirements,
  options: SettleOptions,
): Promise<SettleResponse> {
  const { reservation, answer, runsHandler = false } = options;
  if (reservation === undefined) {
    return settleDirectly(settling, { payload, requirements, options });
  }
  const payment = paymentOf(payload, requirements);
  if (payment === undefined || authorizationKey(payment.id) !== authorizationKey(reservation.id)) {
    return refusedResponse({
      reason: "invalid_payload",
      message: "The payment differs from the reserved one.",
      network: requirements.network,
    });
  }
  const response = await settleReserved(settling, {
    payment,
    reservation,
    answer,
    hasRun: !runsHandler,
  });
  if (
    response.success &&
    runsHandler &&
    !(await countRun(settling.context.ledger, reservation.token))
  ) {
    throw reservationLost();
  }
  return response;
}

/** Resolves to whether the payment is in the queue or a transaction, or confirmed. */
export async function isSettlementBegun(
  settling: SettlingContext,
  payload: AnyPaymentPayload,
  requirements: AnyPaymentRequirements,
): Promise<boolean> {
  const payment = (await lookUp(settling, payload, requirements))?.payment;
  return payment !== undefined && isBeingSettled(payment);
}

/**
 * True if a payment is reserved, queued, sent, or settled: a stop switch does not end it. Where its
 * owner is silent for longer than a heartbeat, it is a new one again.
 */
export async function isUnderWay(
  settling: SettlingContext,
  payload: AnyPaymentPayload,
  requirements: AnyPaymentRequirements,
): Promise<boolean> {
  const known = await lookUp(settling, payload, requirements);
  return known !== undefined && known.availability !== "free";
}

function lookUp(
  { context }: SettlingContext,
  payload: AnyPaymentPayload,
  requirements: AnyPaymentRequirements,
) {
  const payment = paymentOf(payload, requirements);
  if (payment === undefined) return undefined;
  return lookUpPayment(context.ledger, { id: payment.id, fingerprint: settleFingerprint(payment) });
}

/** The caller holds a reservation since before its handler ran, or took one up again. */
async function settleReserved(
  settling: SettlingContext,
  options: {
    payment: Payment;
    reservation: Reservation;
    answer: SealedAnswer | undefined;
    /** True if the handler has run before the money moves. */
    hasRun: boolean;
  },
): Promise<SettleResponse> {
  const { context, maxAnswerBytes } = settling;
  const { payment, reservation, answer, hasRun } = options;
  const queued = await enqueuePayment(context.ledger, {
    token: reservation.token,
    payer: payment.id.payer,
    order: schemeOf(payment).commit(payment),
    hasRun,
    answer: answer && answer.sealed.length <= maxAnswerBytes ? answer : undefined,
  });
  if (queued === undefined) {
    // Its owner was silent for too long, and the payment was taken away.
    const fingerprint = settleFingerprint(payment);
    const { payment: known } = await lookUpPayment(context.ledger, { id: payment.id, fingerprint });
    if (known === undefined || !isBeingSettled(known)) throw reservationLost();
    return duplicateResponse({ payment: known, hash: await findHash(settling, known) });
  }
  await context.faultPoint("queued");
  const { token } = reservation;
  const outcome = await awaitOutcome(settling, { known: queued, payment, token });
  const response = settleResponseOf(outcome);
  if (response.success) settling.verifier.prove(payment);
  return response;
}

interface DirectSettlement {
  payload: AnyPaymentPayload;
  requirements: AnyPaymentRequirements;
  options: SettleOptions;
}

/** Without a reservation: verified, reserved and queued in one go. */
async function settleDirectly(
  settling: SettlingContext,
  { payload, requirements, options }: DirectSettlement,
): Promise<SettleResponse> {
  const { idempotencyKey, limitKey } = options;
  const recall = () => recallPayment(settling, payload, requirements, idempotencyKey);
  const stopped = settling.stops.refusalOf(requirements.network, undefined);
  if (stopped !== undefined) {
    const known = await recall();
    if (known) return known;
    throw stopped;
  }
  let verdict: Verdict;
  try {
    verdict = await settling.verifier.verify(payload, requirements, { limitKey });
  } catch (error) {
    const known = await recall();
    if (known) return known;
    throw error;
  }
  if (!verdict.isValid) {
    // A payload that names no payer names no payment that could have been settled before.
    const { invalidReason: reason, invalidMessage: message, payer } = verdict;
    const refused = refusedResponse({ reason, message, payer, network: requirements.network });
    if (payer === undefined) return refused;
    return (await recall()) ?? refused;
  }
  const { network } = verdict.payment;
  // Again: a verification waits for a node, and the switch may have been set meanwhile.
  const refusal =
    settling.stops.refusalOf(network, undefined) ??
    (canPay(settling.settlements, network) ? undefined : outOfGasMoney(network));
  if (refusal !== undefined) {
    const known = await recall();
    if (known) return known;
    throw refusal;
  }
  return queueVerified(settling, verdict, idempotencyKey);
}

/** Reserves and queues a payment that was verified, and waits for its outcome. */
async function queueVerified(
  settling: SettlingContext,
  verdict: Verdict & { isValid: true },
  idempotencyKey: string | undefined,
): Promise<SettleResponse> {
  const { context, settlements } = settling;
  const { simulationCache, ledger } = context;
  const { payment, payerHasCode, gasUsed, balance } = verdict;
  simulationCache.remember(payment, { payerHasCode, gasUsed });
  const keyHash = keyHashOf(payment, idempotencyKey);
  const fingerprint = settleFingerprint(payment);
  const { admit, commit } = schemeOf(payment);
  const reserved = await admitPayment(
    { ledger, settlements },
    {
      ...admit(payment),
      fingerprint,
      keyHash,
      balance,
      order: commit(payment),
      gasAtRisk: payerHasCode ? simulationCache.gasAtRisk(payment.id) : undefined,
    },
  );
  await context.faultPoint("queued");
  switch (reserved.outcome) {
    case "reserved": {
      const known = queuedPayment(reserved, { payment, fingerprint, payerHasCode });
      return conclude(settling, { payment, known, token: reserved.token });
    }
    case "resumed":
      return conclude(settling, { payment, known: reserved.payment, token: reserved.token });
    case "in_use":
    case "delivered":
      return repeatPayment(settling, { known: reserved.payment, keyHash, payment });
    default:
      return toRefusedSettlement(payment.id, reserved);
  }
}

function queuedPayment(
  { paymentId, unusedAtBlock, attempts }: ReserveResult & { outcome: "reserved" },
  options: { payment: Payment; fingerprint: string; payerHasCode: boolean },
) {
  const { payment, fingerprint, payerHasCode } = options;
  const { value, validBefore } = schemeOf(payment).admit(payment);
  return {
    id: paymentId,
    value,
    validBefore,
    fingerprint,
    unusedAtBlock,
    attempts,
    settlesAlone: payerHasCode,
  };
}

/** True if it is being settled, or is settled: otherwise the same payment may be tried again. */
function isBeingSettled({ state }: LedgerPayment): boolean {
  return state === "queued" || state === "submitted" || state === "confirmed";
}
