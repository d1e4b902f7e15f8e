/**
 * - `unknown_payment`: the ledger has no such payment.
 * - `not_settled`: its transfer is in no block that counts.
 * - `is_refund`: it is a refund's own operation.
 * - `in_use`: a request is being served with it. Ask again.
 * - `exceeds_payment`: more than is left of the payment.
 * - `nothing_left`: it is given back already, or will be.
 * - `key_conflict`: the idempotency key belongs to a refund with other arguments.
 * - `invalid_request`: malformed arguments.
 * - `unknown_refund`: the ledger has no such refund.
 * - `wrong_state`: the refund is in another state than the step needs.
 * - `not_paid`: the transaction that the operator names has not paid this refund.
 * - `wrong_signature`: the signature is not the float's for this refund.
 */
export type RefundErrorReason =
  | "unknown_payment"
  | "not_settled"
  | "is_refund"
  | "in_use"
  | "exceeds_payment"
  | "nothing_left"
  | "key_conflict"
  | "invalid_request"
  | "unknown_refund"
  | "wrong_state"
  | "not_paid"
  | "wrong_signature";

/** A refund that is not made, for the caller's reasons. Nothing was written. */
export class RefundError extends Error {
  override readonly name = "RefundError";
  readonly reason: RefundErrorReason;

  constructor(reason: RefundErrorReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
