import {
  formatAuthorization,
  type LookUp,
  type ReservationRequest,
  type Reserved,
  type ReservingFacilitator,
  type SoldItem,
  type VerifyOptions,
} from "@coinslot/protocol";
import { answerInvalid } from "../answer.ts";
import { askFacilitator } from "../facilitator/ask-facilitator.ts";
import {
  beginVerification,
  endVerification,
  hasRoomToWait,
  takeNewPlace,
  takePlace,
  waitForPayer,
} from "../load/load.ts";
import { hasFixedTerms } from "../offer/offer.ts";
import { type AnswerSeal, createAnswerSeal } from "../replay/answer-seal.ts";
import { fingerprintOf } from "../replay/fingerprint.ts";
import { idempotencyKeyOf } from "../replay/idempotency-key.ts";
import { placeOf } from "../replay/place.ts";
import { isBodyUnread } from "../replay/request-body.ts";
import { isGone } from "../response/when-gone.ts";
import type { MatchedPayment } from "../sale.ts";
import { whenEnded } from "./end-reservation.ts";
import { readPaidBody } from "./read-paid-body.ts";

/** Outcome of a payment before its handler: admitted, or the reason for its refusal. */
type Admission = Reserved | { state: "refused"; reason: string } | Overloaded;

/** A payment with its decision, and the request that it pays. */
export interface Admitted {
  admission: Exclude<LookUp, { state: "free" } | { state: "resumable" }> | Admission;
  /** Under the buyer's idempotency key, if there is one. */
  seal: AnswerSeal | undefined;
  fingerprint: string;
}

/**
 * Decides on a well-formed payment: its signature, the body that it pays, then ledger, chain and
 * reservation. Cheap checks come first, and no byte of a body is held for a forgery.
 *
 * @param checked result of the checks that need no network
 * @param refusalIfNew reason to refuse the payment unless it is under way
 * @returns `undefined` when the request has been answered, or its buyer has left
 */
export async function admitPayment(
  order: MatchedPayment,
  checked: { isSignatureKnown?: () => boolean | Promise<boolean> },
  refusalIfNew: string | undefined,
): Promise<Admitted | undefined> {
  const { request, response, payload, payment, route, presented, settings } = order;
  if (isBodyUnread(request) && (await checked.isSignatureKnown?.()) !== true) {
    // It holds no byte yet, so it may always wait.
    const wait = { mayWait: () => true, isGone: () => isGone(response) };
    const verified = await askFacilitator(order, () => verify(order, wait));
    if (verified === undefined) return undefined;
    if ("state" in verified) {
      return { admission: overloaded({ isNew: false }), seal: undefined, fingerprint: "" };
    }
    if (isForged(verified.invalidReason)) return refuse(order, refusalIfNew ?? forged);
  }
  const read = await readPaidBody(order);
  if (read.state === "answered") return undefined;
  if (read.state === "overloaded") {
    return { admission: overloaded({ isNew: false }), seal: undefined, fingerprint: "" };
  }
  try {
    const key = idempotencyKeyOf(request, payload);
    const seal = key === undefined ? undefined : createAnswerSeal({ key, id: payment.id });
    const terms = formatAuthorization(payment.authorization);
    const { varyHeaders, accepts } = route;
    const wire = presented.wire.name;
    const place = hasFixedTerms(accepts) ? undefined : placeOf(request, settings.publicUrl);
    const identified = { request, body: read.body, varyHeaders, terms, wire, place };
    const fingerprint = fingerprintOf(identified);
    const wanted = { id: payment.id, fingerprint, keyHash: seal?.keyHash };
    const admission = await askFacilitator(order, () =>
      admit(order, { request: wanted, refusalIfNew, holdsBody: read.holdsBody }),
    );
    return admission && { admission, seal, fingerprint };
  } finally {
    read.close();
  }
}

const forged = "invalid_exact_evm_signature";
/** The same reason, in the words of facilitators that began with version 1. */
const forgedInVersion1 = "invalid_exact_evm_payload_signature";
function isForged(reason: string | undefined): boolean {
  return reason === forged || reason === forgedInVersion1;
}

function refuse(order: MatchedPayment, reason: string): undefined {
  answerInvalid(order, { ...order, reason });
}

/**
 * Checks ledger, chain and reservation. A resumed payment was checked before it went to the chain.
 * After each wait the buyer may have left: it then costs neither a verification nor a reservation.
 *
 * @returns `undefined` when the buyer has left
 */
async function admit(
  order: MatchedPayment,
  options: {
    request: ReservationRequest;
    refusalIfNew: string | undefined;
    /** True if the pool holds bytes for it. */
    holdsBody: boolean;
  },
): Promise<Admission | undefined> {
  const { facilitator, payment, response, bodies, settings, load, place } = order;
  const { request, refusalIfNew, holdsBody } = options;
  const wait = {
    // Waiting bodies must not take the room of others.
    mayWait: () => !holdsBody || 2 * bodies.heldBytes() <= settings.maxUnverifiedBytes,
    isGone: () => isGone(response),
  };
  await whenEnded(order.endings, request.id);
  const found = await facilitator.lookUp(request);
  if (found.state !== "free" && found.state !== "resumable") return found;
  if (wait.isGone()) return undefined;
  const isNew = found.state === "free";
  if (isNew && refusalIfNew !== undefined) return { state: "refused", reason: refusalIfNew };
  if (isNew && !takeNewPlace(load, place, settings)) return overloaded({ isNew });
  const verified = isNew ? await verify(order, wait) : undefined;
  if (verified && "state" in verified) return verified;
  if (verified?.isValid === false) {
    return { state: "refused", reason: verified.invalidReason ?? "unexpected_verify_error" };
  }
  const { value, validBefore, to: payTo } = payment.authorization;
  const balance = verified?.balance;
  const { kind } = payment;
  const sold = soldItemOf(order);
  const reserve = () =>
    facilitator.reserve({ value, validBefore, payTo, balance, kind, sold, ...request });
  // A payment under way needs no place among the payer's new ones.
  const resumed = isNew ? undefined : await reserve();
  const reserved =
    resumed !== undefined && !isLimited(resumed)
      ? resumed
      : await takeTurn(order, { isNew, reserve, wait });
  if (reserved === "gone") return undefined;
  if (reserved === "no_place") return noPlace;
  if (reserved.state !== "reserved" || isNew) return reserved;
  // The payment to be resumed was released meanwhile, and the chain was not asked about a new one.
  await facilitator.release(reserved.reservation, "unused", { hasRun: false });
  return { state: "in_use" };
}

/** Reserves when no other request of the payer is in the way. It holds no place while it waits. */
function takeTurn(
  order: MatchedPayment,
  options: {
    isNew: boolean;
    reserve: () => Promise<Reserved>;
    wait: { mayWait: () => boolean; isGone: () => boolean };
  },
): Promise<Reserved | Overloaded | "gone" | "no_place"> {
  const { turns, payment, settings, load, place } = order;
  const { isNew, reserve, wait } = options;
  waitForPayer(load, place);
  return turns.take<Reserved | Overloaded>({
    key: payment.id.payer,
    async attempt() {
      const hasPlace = isNew
        ? takeNewPlace(load, place, settings)
        : takePlace(load, place, settings);
      return hasPlace ? reserve() : overloaded({ isNew });
    },
    mustWait(result) {
      const waits = isLimited(result);
      if (waits) waitForPayer(load, place);
      return waits;
    },
    mayWait: () => hasRoomToWait(load, settings) && wait.mayWait(),
    isGone: wait.isGone,
  });
}

/** The process has taken on as much as it may. `isNew`: no earlier request moved the money. */
interface Overloaded {
  state: "overloaded";
  isNew: boolean;
}

function overloaded({ isNew }: { isNew: boolean }): Overloaded {
  return { state: "overloaded", isNew };
}

/** Returns whether the payer's own running requests are in the way. */
function isLimited(result: Reserved | Overloaded): boolean {
  return result.state === "payer_limited" && result.isRunning;
}

/** Others of the payer wait for its running requests, and this one may not. */
const noPlace: Reserved = { state: "payer_limited", retryAfterSeconds: 1, isRunning: true };

function soldItemOf({ route, resource, presented }: MatchedPayment): SoldItem {
  // Host and query are the buyer's to choose, and would make a new name with every request.
  const { key, refund } = route;
  const sold = { route: key, resource: new URL(resource.url).pathname, wire: presented.wire.name };
  return refund === undefined ? sold : { ...sold, refund };
}

/** Verifies in the client's share of the places. */
async function verify(
  order: MatchedPayment,
  wait: VerifyOptions["wait"],
): Promise<Awaited<ReturnType<ReservingFacilitator["verify"]>> | Overloaded> {
  const { facilitator, payload, requirements, limitKey, load, settings } = order;
  if (!beginVerification(load, limitKey, settings)) return overloaded({ isNew: true });
  try {
    return await facilitator.verify(payload, requirements, verifyOptions(order, wait));
  } finally {
    endVerification(load, limitKey);
  }
}

/** Options of each verification of an order. */
export function verifyOptions(
  { route, resource, limitKey }: MatchedPayment,
  wait?: VerifyOptions["wait"],
) {
  const { paymentFlow, handlerTimeoutSeconds } = route;
  const options = { route: route.key, resource, limitKey, wait };
  return paymentFlow === "upfront" ? options : { handlerTimeoutSeconds, ...options };
}
