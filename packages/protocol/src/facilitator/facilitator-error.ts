/**
 * A fault of the facilitator, of its chain or of its ledger: never of the payer. HTTP answers with
 * 5xx. Its message is safe to show: it names no internal address, no key and no stack.
 */
export class FacilitatorError extends Error {
  override readonly name = "FacilitatorError";
  /** True if the same call may succeed later. */
  readonly isRetryable: boolean;
  /**
   * `unavailable`: could not be reached or is not ready. `bad_response`: its answer was malformed.
   */
  readonly kind: "unavailable" | "bad_response";

  /** Delay after which the same call may succeed, if known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    options: {
      kind: "unavailable" | "bad_response";
      isRetryable?: boolean;
      retryAfterSeconds?: number;
      cause?: unknown;
    },
  ) {
    super(message, { cause: options.cause });
    this.kind = options.kind;
    this.isRetryable = options.isRetryable ?? true;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Thrown in place of a verification whose caller has left before it began. Not a fault. */
export class CallerGoneError extends FacilitatorError {
  constructor() {
    super("The caller has left before its payment was verified", { kind: "unavailable" });
  }
}

/**
 * Thrown for a new payment while the operator's stop switch is set. Not a fault. A payment under
 * way goes on. Its message has the operator's reason, and is for buyers.
 */
export class StoppedError extends FacilitatorError {
  constructor(message: string, { retryAfterSeconds }: { retryAfterSeconds: number }) {
    super(message, { kind: "unavailable", retryAfterSeconds });
  }
}

/**
 * Thrown for a payment whose caller has used up its own share of verifications, by payments that
 * came to nothing. Not a fault: other callers are served.
 */
export class CallerLimitedError extends FacilitatorError {
  constructor(message: string, { retryAfterSeconds }: { retryAfterSeconds: number }) {
    super(message, { kind: "unavailable", retryAfterSeconds });
  }
}
