import {
  CallerLimitedError,
  FacilitatorError,
  StoppedError,
  type VisitReason,
} from "@coinslot/protocol";

/** A refusal for another reason than the offer: a code for programs, and the same in words. */
export interface Refusal {
  status: 400 | 403 | 409 | 413 | 429 | 500 | 502 | 503 | 504;
  /** A reason that is counted, but where no route is known. */
  error: Exclude<VisitReason, "offered" | "other"> | "invalid_path" | "route_closed";
  message: string;
  /** Hash of the transaction whose outcome is not known. */
  transaction?: string;
  retryAfterSeconds?: number;
  /** True if the payment has moved money, where that is certain. */
  charged?: boolean;
}

/** The payment header cannot be read. */
export function malformedPayment(message: string): Refusal {
  return { status: 400, error: "invalid_payload", message };
}

/** The path of the request has no one meaning, or cannot be decoded. */
export const malformedPath: Refusal = {
  status: 400,
  error: "invalid_path",
  message: "The path of the request has no one meaning, or cannot be decoded",
};

/** The seller refuses this payer. */
export function refusedPayer(message: string): Refusal {
  return { status: 403, error: "payer_refused", message };
}

/** Another request holds the authorization, or the same one still runs. */
export const inUse: Refusal = {
  status: 409,
  error: "payment_in_use",
  message: "This payment is in use by another request",
  retryAfterSeconds: 1,
};

/** The idempotency key belongs to another payment or request. */
export const keyConflict: Refusal = {
  status: 409,
  error: "idempotency_key_in_use",
  message: "This Idempotency-Key belongs to another payment or another request",
};

/** The request cannot be recognised again, because it is not read to its end. */
export function requestTooLarge(maxRequestBytes: number): Refusal {
  return {
    status: 413,
    error: "request_too_large",
    message: `The body of a paid request has at most ${maxRequestBytes} bytes here`,
  };
}

/** The pool for bodies of unverified payments is full: this body was the slowest. */
export const bodyDropped: Refusal = {
  status: 503,
  error: "request_dropped",
  message: "Too many requests arrive, and this one too slowly. Nothing was charged",
  retryAfterSeconds: 1,
};

/**
 * The process has taken on as many paid requests, or bytes for them, as it may. The payment was not
 * looked up: an earlier request with it may have moved its money.
 */
export const overloaded: Refusal = {
  status: 503,
  error: "overloaded",
  message: "Too many paid requests are under way here. Retry this one later",
  retryAfterSeconds: 1,
};

/** The same, for a payment that no other request has under way. */
export const overloadedUncharged: Refusal = {
  ...overloaded,
  charged: false,
  message: `${overloaded.message}. Nothing was charged`,
};

/** The payer has had too many unpaid handler runs. */
export function payerLimited(retryAfterSeconds: number): Refusal {
  return {
    status: 429,
    error: "payer_limited",
    charged: false,
    message: "Too many requests of this payer ended without a payment. Nothing was charged",
    retryAfterSeconds,
  };
}

/** The seller's code or settings are at fault. */
export const internalError: Refusal = {
  status: 500,
  error: "internal_error",
  message: "The request could not be served",
};

/** The handler's answer cannot be held. */
export function responseTooLarge(options: { maxResponseBytes: number; isPaid: boolean }): Refusal {
  const { maxResponseBytes, isPaid } = options;
  const reason = `The answer is larger than the ${maxResponseBytes} bytes that are held`;
  return {
    status: 500,
    error: "response_too_large",
    charged: isPaid,
    message: `${reason}. ${consequenceOf(isPaid)}`,
  };
}

/** The handler did not answer in time. */
export function handlerTimeout({ isPaid }: { isPaid: boolean }): Refusal {
  return {
    status: 504,
    error: "handler_timeout",
    charged: isPaid,
    message: `The request took too long. ${consequenceOf(isPaid)}`,
  };
}

/** Consequence of a handler's failure for the buyer's money. */
function consequenceOf(isPaid: boolean): string {
  return isPaid ? "It has been paid for, and is not charged again" : "Nothing was charged";
}

/** The seller's side has not passed its checks yet. */
export const notReady: Refusal = {
  status: 503,
  error: "not_ready",
  message: "Payments cannot be accepted yet",
  retryAfterSeconds: 1,
};

/** The two Expresses of the application read the seller's key differently. */
export const closedRoute: Refusal = {
  status: 503,
  error: "route_closed",
  message: "This route cannot be sold as it is configured. Nothing was charged",
};

/**
 * The money may have moved; the outcome is not known yet. The same payment resumes, and never pays
 * twice.
 */
export function settlementPending(transaction: string): Refusal {
  return {
    status: 503,
    error: "settlement_pending",
    message: "The outcome of the payment is not known yet. Retry the same request with it",
    transaction,
    retryAfterSeconds: 2,
  };
}

/**
 * The transaction failed, and the authorization can still be executed: another payment might pay a
 * second time.
 */
export function settlementFailed(transaction: string): Refusal {
  return {
    status: 503,
    error: "settlement_failed",
    message: "The transaction of the payment failed. Retry the same request with it",
    transaction,
    retryAfterSeconds: 2,
  };
}

/** The payment has moved money, and its handler has run as often as it may. */
export function paymentUsedUp(transaction: string): Refusal {
  return {
    status: 409,
    error: "payment_used_up",
    charged: true,
    message: "This payment has been charged, and its request has failed too often to run again",
    transaction,
  };
}

/** The payment has moved money, which is given back, or is about to be. */
export function paymentRefunded(transaction: string): Refusal {
  return {
    status: 409,
    error: "payment_refunded",
    message: "This payment is given back to its payer and buys nothing. Sign a new one",
    transaction,
  };
}

/** The payment has moved money, and its answer went out, which is not kept for another delivery. */
export function answerNotKept(transaction: string): Refusal {
  return {
    status: 409,
    error: "answer_not_kept",
    charged: true,
    message: "This payment has been charged, and its answer was delivered. It is not kept",
    transaction,
  };
}

/** The operator has stopped new payments on the network, or for the route. */
function stopped({ message, retryAfterSeconds }: StoppedError): Refusal {
  return {
    status: 503,
    error: "payments_stopped",
    charged: false,
    message: `${message}. Nothing was charged`,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  };
}

/** The facilitator, its chain or its ledger is at fault, before any money could move. */
export function facilitatorFault(error: unknown): Refusal {
  if (error instanceof StoppedError) return stopped(error);
  // An earlier request with the same payment may have moved its money: that was not looked up.
  if (error instanceof FacilitatorError && error.kind === "bad_response") {
    return {
      status: 502,
      error: "bad_facilitator_response",
      message: "The facilitator's answer could not be read. This request has charged nothing",
    };
  }
  if (error instanceof CallerLimitedError) {
    return {
      status: 503,
      error: "caller_limited",
      message: "Too many payments of this caller came to nothing. This request has charged nothing",
      retryAfterSeconds: error.retryAfterSeconds ?? 2,
    };
  }
  return {
    status: 503,
    error: "facilitator_unavailable",
    message: "The payment cannot be checked at the moment. This request has charged nothing",
    retryAfterSeconds:
      (error instanceof FacilitatorError ? error.retryAfterSeconds : undefined) ?? 2,
  };
}
