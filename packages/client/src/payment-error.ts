/**
 * Reason codes of a fetch that pays and returned no response. Only for `outcome_unclear` may money
 * have moved; every other code means that this call has sent no payment.
 */
export type PaymentErrorCode =
  /** The options of `createPayingFetch` cannot work. */
  | "invalid_configuration"
  /** The body is longer than the bound for sending it again. */
  | "body_too_large"
  /** Payment is asked for over plain HTTP, by a host that is not this machine. */
  | "insecure_url"
  /** The offer came from another origin, or after a redirect that a payment cannot follow. */
  | "redirected"
  /** The offer is for a resource on another public host. */
  | "resource_mismatch"
  /** No entry of the offer is in a scheme and on a network in which this payer pays. */
  | "unsupported_offer"
  /** The budget names no such token. */
  | "unknown_asset"
  /** The offer's data on a token contradicts the known data. */
  | "asset_mismatch"
  /** The seller repeats a challenge for which another payment of this budget is booked. */
  | "challenge_in_use"
  /** Above a limit for one payment, for one host, or for a day. */
  | "over_budget"
  /** No offered network has the funds. */
  | "insufficient_funds"
  /** No configured RPC endpoint returned the balance. */
  | "balance_unreadable"
  /** No configured RPC endpoint returned the token's logs. */
  | "chain_unreadable"
  /** After a top-up, the seller asks for other terms than before. */
  | "offer_changed"
  /** The account did not sign, or not before the payment expired. */
  | "signing_failed"
  /** The payment is too long for a header, with the extensions that the seller wants repeated. */
  | "payment_too_large"
  /** The seller could not be connected to with the payment. */
  | "unreachable"
  /** The budget file cannot be understood. */
  | "budget_file_corrupt"
  /** The budget file cannot be read, locked or written. */
  | "budget_file_unavailable"
  /** The file of the payment channels cannot be understood. */
  | "channel_file_corrupt"
  /** The file of the payment channels cannot be read, locked or written. */
  | "channel_file_unavailable"
  /** The file of the payment channels has no such channel. */
  | "channel_unknown"
  /** The clock contradicts the chains, so the age of bookings is unknown. */
  | "clock_wrong"
  /** The payment to resume was made for another request. */
  | "request_mismatch"
  /** The payment was sent, and its outcome is unknown. */
  | "outcome_unclear";

/**
 * The one base of all errors of a fetch that pays. No message holds a key, a URL or a signature.
 */
export class PaymentError extends Error {
  override readonly name: string = "PaymentError";
  readonly code: PaymentErrorCode;

  constructor(code: PaymentErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }

  /** True if the payer's tokens may have moved, or still may. */
  get moneyMayHaveMoved(): boolean {
    return this.code === "outcome_unclear";
  }
}
