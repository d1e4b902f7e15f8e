import {
  type AnyPaymentPayload,
  type AnyPaymentRequirements,
  authorizationKey,
  type Hex,
  type Network,
  type Payment,
  type Reservation,
  type SealedAnswer,
  type SettleOptions,
  type SettleResponse,
} from "@coinslot/protocol";
import type { QueuedPayment } from "../ledger/payments/enqueue-payments.ts";
import type { ConcludedPayment, LedgerPayment } from "../ledger/payments/ledger-payment.ts";
import type { OrderedPayment } from "../ledger/queries/find-orders.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { Verdict } from "../verify/verdict.ts";
import type { Verifier } from "../verify/verifier.ts";
import type { ReservePayment } from "./admit-payment.ts";
import type { SettlementContext } from "./context.ts";
import { hasOutcome } from "./outcome-notifier.ts";
import { toRefusedSettlement } from "./reserved.ts";
import { isAskedFor, keyHashOf, paymentOf, settleFingerprint } from "./settle-request.ts";
import { duplicateResponse, refusedResponse, settleResponseOf } from "./settle-response.ts";
import { outOfGasMoney, reservationLost } from "./unavailable-errors.ts";

export interface SettlePaymentOptions {
  context: SettlementContext;
  verifier: Pick<Verifier, "verify">;
  reserve: ReservePayment;
  /** Says that this process has queued a payment, or, without one, that the queue of a network may have changed. */
  notify: (network: Network, queued?: OrderedPayment) => void;
  /** Whether a relayer of the network has gas money. */
  canPay: (network: Network) => boolean;
  /** How long to wait for an outcome until the answer is "pending". */
  timeoutMs: number;
  /** A larger answer is not kept: the payment settles, and can be resumed without it. */
  maxAnswerBytes: number;
}

/** Settles payments, and answers what came of them. */
export interface PaymentSettler {
  /** @throws FacilitatorError, DatabaseError: the outcome is unknown, the payment may be settled. */
  settle(
    payload: AnyPaymentPayload,
    requirements: AnyPaymentRequirements,
    options: SettleOptions,
  ): Promise<SettleResponse>;
  /** Whether the payment was given to the queue before, and has not come to nothing. */
  isBegun(payload: AnyPaymentPayload, requirements: AnyPaymentRequirements): Promise<boolean>;
}

/** Creates what settles payments by way of the ledger's queue. */
export function createPaymentSettler(options: SettlePaymentOptions): PaymentSettler {
  const { context, verifier, reserve, notify, canPay, timeoutMs, maxAnswerBytes } = options;
  const { ledger, board, readings, faultPoint, metrics, logger } = context;

  /** The caller holds a reservation since before its handler ran, or took one up again. */
  async function settleReserved(
    payment: Payment,
    reservation: Reservation,
    answer: SealedAnswer | undefined,
  ): Promise<SettleResponse> {
    const queued = await ledger.enqueue({
      token: reservation.token,
      payer: payment.id.payer,
      order: schemeOf(payment).commit(payment),
      answer: answer && answer.sealed.length <= maxAnswerBytes ? answer : undefined,
    });
    if (queued === undefined) {
      // Its owner was silent for too long, and the payment was taken away.
      const fingerprint = settleFingerprint(payment);
      const standing = await ledger.lookUp({ id: payment.id, fingerprint });
      if (standing.payment === undefined || !isBeingSettled(standing.payment)) {
        throw reservationLost();
      }
      return duplicateResponse(standing.payment, await hashOf(standing.payment));
    }
    await faultPoint("queued");
    return settleResponseOf(...(await outcomeOf(queued, payment)));
  }

  /** Nobody has reserved: verified, reserved and queued in one go. */
  async function settleDirectly(
    payload: AnyPaymentPayload,
    requirements: AnyPaymentRequirements,
    { idempotencyKey, limitKey }: SettleOptions,
  ): Promise<SettleResponse> {
    const { network } = requirements;
    let verdict: Verdict;
    try {
      verdict = await verifier.verify(payload, requirements, { limitKey });
    } catch (error) {
      const known = await recall(payload, requirements, idempotencyKey);
      if (known) return known;
      throw error;
    }
    if (!verdict.isValid) {
      // What names no payer names no payment that could have been settled before.
      const { invalidReason: reason, invalidMessage: message, payer } = verdict;
      const refused = refusedResponse({ reason, message, payer, network });
      if (payer === undefined) return refused;
      return (await recall(payload, requirements, idempotencyKey)) ?? refused;
    }
    const { payment, payerHasCode, gasUsed, balance } = verdict;
    if (!canPay(payment.network)) {
      const known = await recall(payload, requirements, idempotencyKey);
      if (known) return known;
      throw outOfGasMoney(payment.network);
    }
    readings.remember(payment, { payerHasCode, gasUsed });
    const keyHash = keyHashOf(payment, idempotencyKey);
    const fingerprint = settleFingerprint(payment);
    const reserved = await reserve({
      ...schemeOf(payment).admit(payment),
      fingerprint,
      keyHash,
      balance,
      order: schemeOf(payment).commit(payment),
      gasAtRisk: payerHasCode ? readings.gasAtRisk(payment.id) : undefined,
    });
    await faultPoint("queued");
    switch (reserved.outcome) {
      case "reserved":
        return conclude(
          payment,
          {
            id: reserved.paymentId,
            value: payment.authorization.value,
            validBefore: payment.authorization.validBefore,
            fingerprint,
            unusedAtBlock: reserved.unusedAtBlock,
            carried: reserved.carried,
            isAlone: payerHasCode,
          },
          reserved.token,
        );
      case "resumed":
        return conclude(payment, reserved.payment, reserved.token);
      case "in_use":
      case "delivered":
        return repeat(reserved.payment, keyHash, payment);
      default:
        return toRefusedSettlement(payment.id, reserved);
    }
  }

  /** Waits as the holder of the token, and tells the ledger that the outcome is being told. */
  async function conclude(
    payment: Payment,
    known: QueuedPayment | LedgerPayment,
    token: string,
  ): Promise<SettleResponse> {
    const { payer } = payment.id;
    let settled: ConcludedPayment | undefined;
    try {
      const [standing, hash] = await outcomeOf(known, payment);
      settled = standing;
      return settleResponseOf(settled, hash);
    } finally {
      const end =
        settled?.state === "confirmed"
          ? ledger.deliver(token)
          : ledger.release({ token, payer, countsAgainstPayer: false });
      // Written later, it changes nothing of what is told.
      await end.catch((err: unknown) => {
        logger.warn({ err, ...payment.id }, "the end of a settlement could not be recorded yet");
      });
    }
  }

  /** What a repeated settlement is told of a payment that another call brought. */
  async function repeat(
    known: LedgerPayment,
    keyHash: string | undefined,
    payment: Payment | undefined,
  ): Promise<SettleResponse> {
    const isSameCaller = keyHash !== undefined && known.keyHash === keyHash;
    if (!isSameCaller) return duplicateResponse(known, await hashOf(known));
    return settleResponseOf(...(await outcomeOf(known, payment)));
  }

  /** A payment that the chain refuses now may be one that was settled before. */
  async function recall(
    payload: AnyPaymentPayload,
    requirements: AnyPaymentRequirements,
    idempotencyKey: string | undefined,
  ): Promise<SettleResponse | undefined> {
    const payment = paymentOf(payload, requirements);
    if (payment === undefined || !isAskedFor(payment)) return undefined;
    const keyHash = keyHashOf(payment, idempotencyKey);
    const { standing, payment: known } = await ledger.lookUp({
      id: payment.id,
      fingerprint: settleFingerprint(payment),
      keyHash,
    });
    if (known === undefined || standing === "free" || standing === "key_conflict") return undefined;
    if (standing !== "resumable") return repeat(known, keyHash, payment);
    const taken = await ledger.reserve({
      ...schemeOf(payment).admit(payment),
      fingerprint: settleFingerprint(payment),
      keyHash,
    });
    if (taken.outcome === "reserved") {
      // It has come to nothing since it was looked up. Held, it would be nobody's to settle, or to watch.
      const { token } = taken;
      await ledger.release({ token, payer: payment.id.payer, countsAgainstPayer: false });
      return undefined;
    }
    if (taken.outcome !== "resumed") return repeat(known, keyHash, payment);
    return conclude(payment, taken.payment, taken.token);
  }

  /** The payment once it has an outcome, or as it stands when the time is over, with its hash. */
  async function outcomeOf(
    known: QueuedPayment | LedgerPayment,
    payment: Payment | undefined,
  ): Promise<[ConcludedPayment, Hex | undefined]> {
    const isNew = !("authorization" in known);
    if (!isNew && hasOutcome(known)) return [known, undefined];
    const startedAt = performance.now();
    board.follow(known.id);
    const waiting = board.wait(known.id, { timeoutMs });
    if (payment) notify(payment.network, isNew ? orderedPayment(known, payment) : undefined);
    const settled = await waiting;
    metrics.settleSeconds(startedAt);
    if (settled === undefined) throw reservationLost();
    return [settled, await hashOf(settled)];
  }

  async function hashOf(payment: ConcludedPayment): Promise<Hex | undefined> {
    const { inclusion, transactionId } = payment;
    if (inclusion || transactionId === undefined) return inclusion?.transactionHash;
    const [newest] = await ledger.findHashes(transactionId);
    return newest;
  }

  return {
    async isBegun(payload, requirements) {
      const payment = paymentOf(payload, requirements);
      if (payment === undefined) return false;
      const fingerprint = settleFingerprint(payment);
      const known = await ledger.lookUp({ id: payment.id, fingerprint });
      return known.payment !== undefined && isBeingSettled(known.payment);
    },

    async settle(payload, requirements, options) {
      const { reservation, answer } = options;
      if (reservation === undefined) return settleDirectly(payload, requirements, options);
      const payment = paymentOf(payload, requirements);
      if (
        payment === undefined ||
        authorizationKey(payment.id) !== authorizationKey(reservation.id)
      ) {
        return refusedResponse({
          reason: "invalid_payload",
          message: "The payment is not the one that was reserved.",
          network: requirements.network,
        });
      }
      return settleReserved(payment, reservation, answer);
    },
  };
}

/** What a transaction needs to know of a payment that has just been queued. */
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

/** Whether somebody settles it, or has settled it: otherwise the same payment may be tried again. */
function isBeingSettled({ state }: LedgerPayment): boolean {
  return state === "queued" || state === "submitted" || state === "confirmed";
}
