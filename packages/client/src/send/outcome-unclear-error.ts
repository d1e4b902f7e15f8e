import { PaymentError } from "../payment-error.ts";
import type { SignedPayment } from "../sign/signed-payment.ts";

/**
 * A payment was sent and nobody said what became of it: it may be settled, now or until it expires.
 * Give `payment` to `resume` with the same request, at once or after a restart; do not simply
 * fetch again, which could pay twice.
 */
export class OutcomeUnclearError extends PaymentError {
  override readonly name = "OutcomeUnclearError";
  /** The status of the last answer, if there was one. */
  readonly status: number | undefined;
  /** When the seller wants to be asked again, if it said so. */
  readonly retryAfterSeconds: number | undefined;
  /** The transaction that the seller is waiting for, if it told its hash. */
  readonly transaction: string | undefined;
  /** Why the seller rejected the payment, if it did so after an attempt whose outcome is not known. */
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

  /** The signed payment. A getter, because loggers print the members of an error, and this one is still worth money. */
  get payment(): SignedPayment {
    return this.#payment;
  }
}
