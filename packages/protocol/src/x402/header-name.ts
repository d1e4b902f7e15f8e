/** Header names of the protocols. Header names have no case. */
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
  /** MPP: the offer, on the 402 response, beside challenges of other schemes. */
  authenticate: "WWW-Authenticate",
  /** MPP: the payment, on the request, beside credentials of other schemes. */
  authorization: "Authorization",
  /** MPP: the payment, where the application uses `Authorization`. */
  paymentAuthorization: "Payment-Authorization",
  /** MPP: the receipt, on the response. */
  paymentReceipt: "Payment-Receipt",
  /** The buyer's secret under which a lost answer can be fetched again. */
  idempotencyKey: "Idempotency-Key",
  /** URL to which a hosted facilitator posts lifecycle events. */
  eventCallback: "X-Event-Callback",
} as const;
