import type { ResourceInfo } from "../x402/resource-info.ts";
import type { SettleResponse } from "../x402/settle-response.ts";
import type { AnySupported, Supported } from "../x402/supported.ts";
import type { VerifyResponse } from "../x402/verify-response.ts";
import type { BalanceReading, Reservation, Reservations, SealedAnswer } from "./reservation.ts";

/**
 * A payment payload as a caller in the same process passes it: of either version, perhaps typed by
 * another implementation. A facilitator reads it with `readFacilitatorArguments`.
 */
export interface AnyPaymentPayload {
  x402Version: number;
  payload: Record<string, unknown>;
}

/** Payment requirements as a caller in the same process passes them, of either version. */
export interface AnyPaymentRequirements {
  scheme: string;
  network: string;
  asset: string;
  payTo: string;
  maxTimeoutSeconds: number;
}

/** What may accompany a verification. */
export interface VerifyOptions {
  /** Time that the route grants its handler; the authorization must outlive it. */
  handlerTimeoutSeconds?: number | undefined;
  /** What is sold. Version 1 tells it to the facilitator in the requirements. */
  resource?: ResourceInfo | undefined;
  /**
   * Whose limit a forged signature counts against: the caller's, never the payer's that it names.
   * Without one, only the limit of all callers together holds.
   */
  limitKey?: string | undefined;
}

/** What may accompany a settlement. */
export interface SettleOptions {
  /** Held by the caller since before its handler ran. Without one, `settle` reserves by itself. */
  reservation?: Reservation | undefined;
  /** The caller's key for this settlement: repeated with it, a settlement answers the same again. */
  idempotencyKey?: string | undefined;
  /** The handler's answer, kept before the money moves, so that it can be delivered after a crash. */
  answer?: SealedAnswer | undefined;
  /** What is sold. Version 1 tells it to the facilitator in the requirements. */
  resource?: ResourceInfo | undefined;
  /**
   * Whose limit a forged signature counts against: the caller's, never the payer's that it names.
   * Without one, only the limit of all callers together holds.
   */
  limitKey?: string | undefined;
}

/**
 * Verifies and settles payments: in this process, or elsewhere over HTTP. The first two parameters
 * are those of the reference implementation, so that either facilitator works in either middleware.
 *
 * A bad payment is a returned value. A throw means that the facilitator or its chain is at fault;
 * thrown by `settle`, it means that the outcome is not known, and the payment may be settled.
 */
export interface Facilitator {
  verify(
    paymentPayload: AnyPaymentPayload,
    paymentRequirements: AnyPaymentRequirements,
    options?: VerifyOptions,
  ): Promise<VerifyResponse>;
  settle(
    paymentPayload: AnyPaymentPayload,
    paymentRequirements: AnyPaymentRequirements,
    options?: SettleOptions,
  ): Promise<SettleResponse>;
  /** Callers read the answer with `supportedSchema`. */
  getSupported(): AnySupported | Promise<AnySupported>;
}

/**
 * A facilitator that also answers for who may run: it holds an authorization for one request at a
 * time, from before the handler until the answer is delivered.
 */
export interface ReservingFacilitator extends Facilitator, Reservations {
  /**
   * Resolves when configuration, chains and ledger have been found well.
   *
   * @throws one error that names every problem. It stays so until the process is started again.
   */
  ready(): Promise<void>;
  getSupported(): Promise<Supported>;
  /**
   * The checks that come before a request's body is read: they ask no ledger, and a chain only where
   * a signature is none of the payer's key, for whether the payer has code that could accept it.
   *
   * `isSignatureKnown`, of a valid one, says whether the signature is known to be good: the payer's own
   * key has signed, or the payment has begun. Else only the payer's code can tell.
   *
   * @throws FacilitatorError where that cannot be asked, or the caller has asked too often.
   */
  verifyLocally(
    paymentPayload: AnyPaymentPayload,
    paymentRequirements: AnyPaymentRequirements,
    options?: VerifyOptions,
  ): Promise<VerifyResponse & { isSignatureKnown?: () => boolean | Promise<boolean> }>;
  /** Everything, with the balance that was read, on which a reservation is decided. */
  verify(
    paymentPayload: AnyPaymentPayload,
    paymentRequirements: AnyPaymentRequirements,
    options?: VerifyOptions,
  ): Promise<VerifyResponse & { balance?: BalanceReading | undefined }>;
}
