import {
  checkPayment,
  type Facilitator,
  FacilitatorError,
  parseNetwork,
  parseSettleResponse,
  parseVerifyResponse,
  type ReservationStore,
  type ReservingFacilitator,
  readFacilitatorArguments,
  readPayment,
  type SettleResponse,
  settleResponseSchema,
  supportedSchema,
  type VerifyResponse,
  verifyResponseSchema,
} from "@coinslot/protocol";
import { type ForeignRequest, toForeignRequest } from "./foreign-request.ts";

/**
 * Lets a facilitator that keeps no reservations (a remote one, or another implementation's) work
 * with reservations of the seller's. It is trusted to verify and to settle; that what it says has
 * the right form is checked, and a settlement whose outcome it does not say stays open.
 */
export function withReservations(
  facilitator: Facilitator,
  store: ReservationStore,
  options: {
    /** Unix milliseconds. */
    now?: () => number;
  } = {},
): ReservingFacilitator {
  const { now = Date.now } = options;
  /** How the facilitator calls each network in version 1. */
  const networkNames = new Map<string, string>();

  async function getSupported() {
    const listed = await facilitator.getSupported();
    const supported = supportedSchema.safeParse(listed);
    if (!supported.success) throw unreadable("what it supports");
    for (const { x402Version, network } of listed.kinds) {
      if (x402Version === 1) networkNames.set(parseNetwork(network) ?? network, network);
    }
    return supported.data;
  }

  function read(
    paymentPayload: unknown,
    paymentRequirements: unknown,
    resource: Parameters<typeof toForeignRequest>[0]["resource"],
  ): { ok: true; foreign: ForeignRequest } | { ok: false; refusal: VerifyResponse } {
    const arguments_ = readFacilitatorArguments(paymentPayload, paymentRequirements);
    if (!arguments_.ok) {
      const { reason, message } = arguments_;
      return {
        ok: false,
        refusal: { isValid: false, invalidReason: reason, invalidMessage: message },
      };
    }
    const { request } = arguments_;
    const networkName = networkNames.get(request.paymentRequirements.network);
    return { ok: true, foreign: toForeignRequest({ request, resource, networkName }) };
  }

  async function ask(foreign: ForeignRequest, idempotencyKey: string): Promise<SettleResponse> {
    const { paymentPayload, paymentRequirements } = foreign;
    const settled = settleResponseSchema.safeParse(
      await facilitator.settle(paymentPayload, paymentRequirements, { idempotencyKey }),
    );
    if (!settled.success) throw unreadable("a settlement");
    return parseSettleResponse(settled.data);
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
      const arguments_ = readFacilitatorArguments(paymentPayload, paymentRequirements);
      if (!arguments_.ok) return { isValid: false, invalidReason: arguments_.reason };
      const { request } = arguments_;
      const found = readPayment(request.paymentPayload, request.paymentRequirements);
      if (!found.ok) return { isValid: false, invalidReason: found.reason, payer: found.payer };
      const { payment } = found;
      const payer = payment.authorization.from;
      const reason = checkPayment(payment, { now: now(), handlerTimeoutSeconds });
      return reason ? { isValid: false, invalidReason: reason, payer } : { isValid: true, payer };
    },

    async verify(paymentPayload, paymentRequirements, { resource } = {}) {
      const arguments_ = read(paymentPayload, paymentRequirements, resource);
      if (!arguments_.ok) return arguments_.refusal;
      const { foreign } = arguments_;
      const verified = verifyResponseSchema.safeParse(
        await facilitator.verify(foreign.paymentPayload, foreign.paymentRequirements),
      );
      if (!verified.success) throw unreadable("a verification");
      return parseVerifyResponse(verified.data);
    },

    async settle(paymentPayload, paymentRequirements, { reservation, answer, resource } = {}) {
      const arguments_ = read(paymentPayload, paymentRequirements, resource);
      if (!arguments_.ok || reservation === undefined) {
        throw new FacilitatorError("A settlement needs a reservation", { kind: "unavailable" });
      }
      const begun = await store.beginSettlement(reservation, answer);
      if (begun.state === "settled") return begun.settlement;
      const settlement = await ask(arguments_.foreign, begun.idempotencyKey);
      if (isUnknown(settlement, begun.state === "repeated")) {
        return { ...settlement, success: false, errorReason: "settlement_pending" };
      }
      await store.endSettlement(reservation, settlement);
      return settlement;
    },
  };
}

/**
 * Whether an answer leaves open what became of the money. Every refusal does, if we asked before and
 * never heard: the first settlement may have been executed, and be the very reason why this one
 * cannot (a duplicate, a nonce that was used, a balance that is gone).
 */
function isUnknown({ success, errorReason }: SettleResponse, isRepeated: boolean): boolean {
  return !success && (isRepeated || errorReason === "settlement_pending");
}

function unreadable(what: string): FacilitatorError {
  return new FacilitatorError(`The facilitator did not say ${what} in a form that can be read`, {
    kind: "bad_response",
  });
}
