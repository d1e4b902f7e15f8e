import { createHash } from "node:crypto";
import {
  type AnyPaymentPayload,
  type AnyPaymentRequirements,
  formatAuthorization,
  type Payment,
  readFacilitatorArguments,
} from "@coinslot/protocol";
import { readClaim } from "../schemes/registry.ts";

/** The payment that the arguments of `settle` bring; `undefined` where they cannot be read. */
export function paymentOf(
  payload: AnyPaymentPayload,
  requirements: AnyPaymentRequirements,
): Payment | undefined {
  const read = readFacilitatorArguments(payload, requirements);
  if (!read.ok) return undefined;
  const held = readClaim(read.request.paymentPayload, read.request.paymentRequirements);
  return held.ok ? held.payment : undefined;
}

/**
 * The request for which a payment without a reservation is reserved: the payment's own contents.
 * Its signature is not checked again when it is returned as settled. So a message with its nonce
 * and other contents must be another request. No hash over a request for a page equals it.
 */
export function settleFingerprint({ authorization }: Payment): string {
  const terms = JSON.stringify(formatAuthorization(authorization));
  return `settle ${createHash("sha256").update(terms).digest("hex")}`;
}

/** True if a payment goes to this seller, with at least the amount that the seller requires. */
export function isAskedFor({ authorization, payTo, amountRequired }: Payment): boolean {
  return authorization.to === payTo && authorization.value >= amountRequired;
}

/**
 * Hash of a caller's idempotency key: the ledger never holds the key itself. Payer and recipient
 * are its scope, so that two shops of one facilitator may number their orders alike.
 */
export function keyHashOf(payment: Payment, key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  const scope = `settle\0${payment.id.payer}\0${payment.payTo}`;
  return createHash("sha256").update(`${scope}\0${key}`).digest("base64url");
}
