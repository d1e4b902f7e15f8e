import { PaymentError } from "../payment-error.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";

/**
 * The payment was sent and its outcome is unknown: it may be settled, now or until it expires. Pass
 * `payment` to `resume` with the same request, at once or after a restart. A plain second fetch
 * could pay twice.
 */
export class OutcomeUnclearError extends PaymentError {
  override readonly name = "OutcomeUnclearError";
  /** The status of the last answer, if there was one. */
  readonly status: number | undefined;
  /** The seller's `Retry-After`, if it sent one. */
  readonly retryAfterSeconds: number | undefined;
  /** The hash of the transaction that the seller is waiting for, if it sent one. */
  readonly transaction: string | undefined;
  /** The seller's reason for a rejection that followed an attempt with an unknown outcome. */
  readonly reason: string | undefined;
  readonly #payment: SignedPayment;

  constructor(options: {
    message: string;
    payment: SignedPayment;
    status?: number | undefined;
    retryAfterSeconds?: number | undefined;
    transaction?: string | undefined;
    reason?: string | undefined;
    cause?: unknown;
  }) {
    super("outcome_unclear", options.message, { cause: options.cause });
    this.status = options.status;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.transaction = options.transaction;
    this.reason = options.reason;
    this.#payment = options.payment;
  }

  /**
   * The signed payment. A getter, because loggers print the members of an error, and this one is
   * still worth money.
   */
  get payment(): SignedPayment {
    return this.#payment;
  }
}
