import {
  type AnyPaymentPayload,
  type AnyPaymentRequirements,
  CallerGoneError,
  checkPayment,
  type Facilitator,
  FacilitatorError,
  type Payment,
  parseSettleResponse,
  parseVerifyResponse,
  type ReservationStore,
  type Reserved,
  type ReservingFacilitator,
  readFacilitatorArguments,
  readPayment,
  recoverPayer,
  type SettleOptions,
  type SettleResponse,
  type Supported,
  settleResponseSchema,
  supportedSchema,
  type VerifyOptions,
  type VerifyResponse,
  verifyResponseSchema,
} from "@coinslot/protocol";
import { toForeignRequest } from "../facilitator/foreign-request.ts";
import { createNetworkNames, type NetworkNames } from "../facilitator/network-names.ts";
import { createVerificationBudget, type VerificationBudget } from "./verification-budget.ts";

/** A facilitator without reservations, and what the seller keeps for it. */
interface RemoteContext {
  facilitator: Facilitator;
  store: ReservationStore;
  budget: VerificationBudget;
  now: () => number;
  networkNames: NetworkNames;
  /** By payment, true if the payer's key has signed it, once that was recovered. */
  keySigned: WeakMap<Payment, boolean>;
}

/**
 * Adds the seller's reservations to a facilitator that keeps none (a remote one, or another
 * implementation's). It is trusted to verify and to settle. The form of its answers is checked, and
 * a settlement without an outcome stays open. Its reasons go on to the buyer. Its messages do not:
 * their content is unknown.
 */
export function withReservations(
  facilitator: Facilitator,
  store: ReservationStore,
  options: {
    /** Unix milliseconds. */
    now?: () => number;
    /** Shared with others that call the same facilitator. Default its own. */
    budget?: VerificationBudget;
  } = {},
): ReservingFacilitator {
  const { now = Date.now, budget = createVerificationBudget({ now }) } = options;
  const networkNames = createNetworkNames();
  const keySigned = new WeakMap<Payment, boolean>();
  const context: RemoteContext = { facilitator, store, budget, now, networkNames, keySigned };
  return {
    lookUp: store.lookUp,
    reserve: (request) => reserve(context, request),
    release: (reservation, cause, given) => release(context, reservation, cause, given),
    deliver: store.deliver,
    getSupported: () => readSupported(context),
    async ready() {
      await readSupported(context);
    },
    verifyLocally: (payload, requirements, given) =>
      verifyLocally(context, payload, requirements, given),
    verify: (payload, requirements, given) => verify(context, payload, requirements, given),
    settle: (payload, requirements, given) => settle(context, payload, requirements, given),
  };
}

async function readSupported({ facilitator, networkNames }: RemoteContext): Promise<Supported> {
  const listed = await facilitator.getSupported();
  const supported = supportedSchema.safeParse(listed);
  if (!supported.success) throw unreadable("the list of supported kinds");
  networkNames.learn(listed);
  return supported.data;
}

async function verifyLocally(
  context: RemoteContext,
  paymentPayload: AnyPaymentPayload,
  paymentRequirements: AnyPaymentRequirements,
  { handlerTimeoutSeconds }: VerifyOptions = {},
) {
  const read = readFacilitatorArguments(paymentPayload, paymentRequirements);
  if (!read.ok) return invalid(read.reason);
  const found = readPayment(read.request.paymentPayload, read.request.paymentRequirements);
  if (!found.ok) return invalid(found.reason, found.payer);
  const payer = found.payment.authorization.from;
  const reason = checkPayment(found.payment, { now: context.now(), handlerTimeoutSeconds });
  if (reason !== undefined) return invalid(reason, payer);
  const isSignatureKnown = () => isSignedByPayer(context, found.payment);
  return { isValid: true, payer, isSignatureKnown };
}

async function verify(
  context: RemoteContext,
  paymentPayload: AnyPaymentPayload,
  paymentRequirements: AnyPaymentRequirements,
  { resource, limitKey, wait }: VerifyOptions = {},
): Promise<VerifyResponse> {
  const { facilitator, budget, networkNames } = context;
  const read = readFacilitatorArguments(paymentPayload, paymentRequirements);
  if (!read.ok) return invalid(read.reason);
  const { request } = read;
  const found = readPayment(request.paymentPayload, request.paymentRequirements);
  if (!found.ok) return invalid(found.reason, found.payer);
  const isKeySigned = await isSignedByPayer(context, found.payment);
  const record = await budget.admit(found.payment, {
    limitKey,
    isSignedByPayer: isKeySigned,
    wait,
  });
  let verdict: "good" | "refused" | undefined;
  let result: VerifyResponse;
  try {
    const networkName = networkNames.nameIn(request);
    const foreign = toForeignRequest({ request, resource, networkName });
    const verified = verifyResponseSchema.safeParse(
      await facilitator.verify(foreign.paymentPayload, foreign.paymentRequirements),
    );
    if (!verified.success) throw unreadable("a verification");
    const { isValid, invalidReason, payer } = parseVerifyResponse(verified.data);
    const reason = codeOf(invalidReason, "unexpected_verify_error");
    verdict = isValid ? "good" : "refused";
    result = isValid ? { isValid, ...(payer && { payer }) } : invalid(reason, payer);
  } finally {
    record(verdict);
  }
  if (verdict === "good" && wait?.isGone()) {
    // No reservation follows that would decide it.
    budget.decide(found.payment.id, { isUnused: true });
    throw new CallerGoneError();
  }
  return result;
}

async function reserve(
  { store, budget }: RemoteContext,
  request: Parameters<ReservationStore["reserve"]>[0],
): Promise<Reserved> {
  const reserved = await store.reserve(request);
  // It waits for its turn, and asks again.
  const isWaiting = reserved.state === "payer_limited" && reserved.isRunning;
  if (!isWaiting) budget.decide(request.id, { isUnused: reserved.state !== "reserved" });
  return reserved;
}

function release(
  { store, budget }: RemoteContext,
  ...[reservation, cause, given]: Parameters<ReservationStore["release"]>
): Promise<void> {
  if (given?.hasRun === false) budget.decide(reservation.id, { isUnused: true });
  else budget.forget(reservation.id);
  return store.release(reservation, cause, given);
}

async function settle(
  context: RemoteContext,
  paymentPayload: AnyPaymentPayload,
  paymentRequirements: AnyPaymentRequirements,
  { reservation, answer, resource, limitKey }: SettleOptions = {},
): Promise<SettleResponse> {
  const { facilitator, store, budget, networkNames } = context;
  const read = readFacilitatorArguments(paymentPayload, paymentRequirements);
  if (!read.ok || reservation === undefined) {
    throw new FacilitatorError("A settlement needs a reservation", { kind: "unavailable" });
  }
  const { request } = read;
  const begun = await store.beginSettlement(reservation, answer);
  if (begun.state === "settled") return begun.settlement;
  const { idempotencyKey } = begun;
  const networkName = networkNames.nameIn(request);
  const foreign = toForeignRequest({ request, resource, networkName });
  const settled = settleResponseSchema.safeParse(
    await facilitator.settle(foreign.paymentPayload, foreign.paymentRequirements, {
      idempotencyKey,
    }),
  );
  if (!settled.success) throw unreadable("a settlement");
  const { errorMessage: _, ...settlement } = parseSettleResponse(settled.data);
  if (settlement.success) {
    prove(context, readPayment(request.paymentPayload, request.paymentRequirements), limitKey);
    budget.forget(reservation.id);
    const dated = { ...settlement, settledAt: context.now() };
    await store.endSettlement(reservation, dated);
    return dated;
  }
  const errorReason = codeOf(settlement.errorReason, "unexpected_settle_error");
  if (isUnknown(errorReason, begun.state === "repeated")) {
    return { ...settlement, errorReason: "settlement_pending" };
  }
  await store.endSettlement(reservation, settlement);
  return { ...settlement, errorReason };
}

/** A payment that was verified elsewhere, or before a restart, proves nothing here. */
function prove(
  { budget, keySigned }: RemoteContext,
  read: ReturnType<typeof readPayment>,
  limitKey: string | undefined,
): void {
  const isKeySigned = read.ok ? keySigned.get(read.payment) : undefined;
  if (!read.ok || isKeySigned === undefined) return;
  budget.prove(read.payment, { limitKey, isSignedByPayer: isKeySigned });
}

/**
 * Returns whether a refusal leaves the outcome of the money open. Every one does after an earlier
 * call without an answer. The first settlement may have been executed. It may be the very reason
 * why this one cannot be: a duplicate, a used nonce, a spent balance.
 */
function isUnknown(errorReason: string, isRepeated: boolean): boolean {
  return isRepeated || errorReason === "settlement_pending";
}

async function isSignedByPayer({ keySigned }: RemoteContext, payment: Payment): Promise<boolean> {
  const known = keySigned.get(payment);
  if (known !== undefined) return known;
  const isSigned = (await recoverPayer(payment)) === payment.authorization.from;
  keySigned.set(payment, isSigned);
  return isSigned;
}

function invalid(invalidReason: string, payer?: string): VerifyResponse {
  return { isValid: false, invalidReason, ...(payer === undefined ? {} : { payer }) };
}

/** A reason, if it is a code for programs and not free text. */
function codeOf(reason: string | undefined, otherwise: string): string {
  return reason !== undefined && /^[A-Za-z0-9_.:-]{1,128}$/.test(reason) ? reason : otherwise;
}

function unreadable(fault: string): FacilitatorError {
  return new FacilitatorError(`The facilitator's answer is malformed: ${fault}`, {
    kind: "bad_response",
  });
}
