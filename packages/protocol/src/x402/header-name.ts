/** Header names of the protocol, by version. Header names have no case. */
export const headerName = {
  /** Version 1: the payment, on the request. */
  payment: "X-PAYMENT",
  /** Version 1: the receipt, on the response. */
  paymentResponseV1: "X-PAYMENT-RESPONSE",
  /** Version 2: the offer, on the 402 response. */
  paymentRequired: "PAYMENT-REQUIRED",
  /** Version 2: the payment, on the request. */
  paymentSignature: "PAYMENT-SIGNATURE",
  /** Version 2: the receipt, on the response. */
  paymentResponse: "PAYMENT-RESPONSE",
  /** The buyer's secret under which a lost answer can be fetched again. */
  idempotencyKey: "Idempotency-Key",
  /** URL to which a hosted facilitator posts lifecycle events. */
  eventCallback: "X-Event-Callback",
} as const;
