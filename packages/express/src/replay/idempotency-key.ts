import { headerName, paymentIdentifier } from "@coinslot/protocol";
import type { Request } from "express";

// Shorter keys can be guessed, and a guessed key opens the answer.
const secret = /^[\x20-\x7e]{16,255}$/;

/**
 * The secret under which a buyer can fetch a lost answer again. It is the `Idempotency-Key` header,
 * or the payment identifier in the payload. A key shorter than 16 characters counts as none.
 */
export function idempotencyKeyOf(
  request: Request,
  payload: Parameters<typeof paymentIdentifier>[0],
): string | undefined {
  const header = request.get(headerName.idempotencyKey);
  return header !== undefined && secret.test(header) ? header : paymentIdentifier(payload);
}
