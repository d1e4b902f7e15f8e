import {
  checkPayment,
  type Facilitator,
  FacilitatorError,
  type FacilitatorRequest,
  type Payment,
  parseNetwork,
  parseSettleResponse,
  parseVerifyResponse,
  type ReservationStore,
  type ReservingFacilitator,
  type ResourceInfo,
  readFacilitatorArguments,
  readPayment,
  recoverPayer,
  settleResponseSchema,
  supportedSchema,
  type VerifyResponse,
  verifyResponseSchema,
} from "@coinslot/protocol";
import { toForeignRequest } from "../facilitator/foreign-request.ts";
import { createVerificationBudget, type VerificationBudget } from "./verification-budget.ts";

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
  /** The facilitator's names of each network in version 1. */
  const networkNames = new Map<string, Set<string>>();

  async function getSupported() {
    const listed = await facilitator.getSupported();
    const supported = supportedSchema.safeParse(listed);
    if (!supported.success) throw unreadable("what it supports");
    for (const { x402Version, network } of listed.kinds) {
      if (x402Version !== 1) continue;
      const id = parseNetwork(network) ?? network;
      networkNames.set(id, (networkNames.get(id) ?? new Set()).add(network));
    }
    return supported.data;
  }

  function toForeign(request: FacilitatorRequest, resource: ResourceInfo | undefined) {
    const { paymentPayload, paymentRequirements } = request;
    const names = networkNames.get(paymentRequirements.network);
    const isKnown = paymentPayload.x402Version === 1 && names?.has(paymentPayload.network);
    const networkName = isKnown ? paymentPayload.network : names?.values().next().value;
    return toForeignRequest({ request, resource, networkName });
  }

  return {
    lookUp: store.lookUp,
    reserve: store.reserve,
    release: store.release,
    deliver: store.deliver,
    getSupported,

    async ready() {
      await getSupported();
    },

    async verifyLocally(paymentPayload, paymentRequirements, { handlerTimeoutSeconds } = {}) {
      const read = readFacilitatorArguments(paymentPayload, paymentRequirements);
      if (!read.ok) return invalid(read.reason);
      const found = readPayment(read.request.paymentPayload, read.request.paymentRequirements);
      if (!found.ok) return invalid(found.reason, found.payer);
      const payer = found.payment.authorization.from;
      const reason = checkPayment(found.payment, { now: now(), handlerTimeoutSeconds });
      if (reason !== undefined) return invalid(reason, payer);
      const isSignatureKnown = () => isSignedByPayer(found.payment);
      return { isValid: true, payer, isSignatureKnown };
    },

    async verify(paymentPayload, paymentRequirements, { resource, limitKey } = {}) {
      const read = readFacilitatorArguments(paymentPayload, paymentRequirements);
      if (!read.ok) return invalid(read.reason);
      const { request } = read;
      const found = readPayment(request.paymentPayload, request.paymentRequirements);
      if (!found.ok) return invalid(found.reason, found.payer);
      const isSigned = await isSignedByPayer(found.payment);
      const record = budget.admit(found.payment, { limitKey, isSignedByPayer: isSigned });
      let verdict: "valid" | "refused" | "none" = "none";
      try {
        const foreign = toForeign(request, resource);
        const verified = verifyResponseSchema.safeParse(
          await facilitator.verify(foreign.paymentPayload, foreign.paymentRequirements),
        );
        if (!verified.success) throw unreadable("a verification");
        const { isValid, invalidReason, payer } = parseVerifyResponse(verified.data);
        const reason = codeOf(invalidReason, "unexpected_verify_error");
        verdict = isValid ? "valid" : "refused";
        return isValid ? { isValid, ...(payer && { payer }) } : invalid(reason, payer);
      } finally {
        record(verdict);
      }
    },

    async settle(paymentPayload, paymentRequirements, { reservation, answer, resource } = {}) {
      const read = readFacilitatorArguments(paymentPayload, paymentRequirements);
      if (!read.ok || reservation === undefined) {
        throw new FacilitatorError("A settlement needs a reservation", { kind: "unavailable" });
      }
      const begun = await store.beginSettlement(reservation, answer);
      if (begun.state === "settled") return begun.settlement;
      const { idempotencyKey } = begun;
      const foreign = toForeign(read.request, resource);
      const settled = settleResponseSchema.safeParse(
        await facilitator.settle(foreign.paymentPayload, foreign.paymentRequirements, {
          idempotencyKey,
        }),
      );
      if (!settled.success) throw unreadable("a settlement");
      const { errorMessage: _, ...settlement } = parseSettleResponse(settled.data);
      if (settlement.success) {
        await store.endSettlement(reservation, settlement);
        return settlement;
      }
      const errorReason = codeOf(settlement.errorReason, "unexpected_settle_error");
      if (isUnknown(errorReason, begun.state === "repeated")) {
        return { ...settlement, errorReason: "settlement_pending" };
      }
      await store.endSettlement(reservation, settlement);
      return { ...settlement, errorReason };
    },
  };
}

/**
 * Whether a refusal leaves the outcome of the money open. Every one does after an earlier call
 * without an answer. The first settlement may have been executed. It may be the very reason why
 * this one cannot be: a duplicate, a nonce that was used, a balance that is gone.
 */
function isUnknown(errorReason: string, isRepeated: boolean): boolean {
  return isRepeated || errorReason === "settlement_pending";
}

async function isSignedByPayer(payment: Payment): Promise<boolean> {
  return (await recoverPayer(payment)) === payment.authorization.from;
}

function invalid(invalidReason: string, payer?: string): VerifyResponse {
  return { isValid: false, invalidReason, ...(payer === undefined ? {} : { payer }) };
}

/** A reason, if it is a code for programs and not free text. */
function codeOf(reason: string | undefined, otherwise: string): string {
  return reason !== undefined && /^[A-Za-z0-9_.:-]{1,128}$/.test(reason) ? reason : otherwise;
}

function unreadable(what: string): FacilitatorError {
  return new FacilitatorError(`The facilitator did not say ${what} in a form that can be read`, {
    kind: "bad_response",
  });
}
