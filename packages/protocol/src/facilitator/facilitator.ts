import type { ResourceInfo } from "../x402/resource-info.ts";
import type { SettleResponse } from "../x402/settle-response.ts";
import type { AnySupported, Supported } from "../x402/supported.ts";
import type { VerifyResponse } from "../x402/verify-response.ts";
import type { ChannelSales } from "./channel-sales.ts";
import type { VisitCounter } from "./counted-visit.ts";
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

/** Optional context of a verification. */
export interface VerifyOptions {
  /** Time that the route grants its handler; the authorization must outlive it. */
  handlerTimeoutSeconds?: number | undefined;
  /** The sold resource. Version 1 carries it in the requirements. */
  resource?: ResourceInfo | undefined;
  /** The route that sells, as the seller wrote it. An operator may have stopped it. */
  route?: string | undefined;
  /**
   * Rate-limit key for forged signatures: the caller's, never that of the named payer. Without one,
   * only the limit of all callers together holds.
   */
  limitKey?: string | undefined;
  /**
   * Conditions of a wait for other verifications and for a node. Without them, it waits. `verify`
   * throws CallerGoneError where `isGone()` ends its wait.
   */
  wait?:
    | {
        /** Returns whether the payment may wait. Otherwise it is refused at once. */
        mayWait(): boolean;
        /** Returns whether its buyer has left, so that it needs no verification. */
        isGone(): boolean;
      }
    | undefined;
}

/** Optional context of a settlement. */
export interface SettleOptions {
  /** Held by the caller since before its handler ran. Without one, `settle` reserves by itself. */
  reservation?: Reservation | undefined;
  /** Idempotency key of the caller: a settlement repeated with it returns the same answer. */
  idempotencyKey?: string | undefined;
  /**
   * The handler's answer, kept before the money moves, so that it can be delivered after a crash.
   */
  answer?: SealedAnswer | undefined;
  /**
   * The caller's handler runs after a success, under its reservation. A ledger counts that run
   * against `maxHandlerRuns` before it returns the success.
   */
  runsHandler?: boolean | undefined;
  /** The sold resource. Version 1 carries it in the requirements. */
  resource?: ResourceInfo | undefined;
  /**
   * Rate-limit key for forged signatures: the caller's, never that of the named payer. Without one,
   * only the limit of all callers together holds.
   */
  limitKey?: string | undefined;
}

/**
 * Verifies and settles payments: in this process, or elsewhere over HTTP. The first two parameters
 * are those of the reference implementation, so that either facilitator works in either middleware.
 *
 * A bad payment is a returned value. A throw means that the facilitator or its chain is at fault,
 * except `CallerGoneError` of `verify`. Thrown by `settle`, it means that the outcome is not known,
 * and the payment may be settled.
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
 * A facilitator that also decides which request may run. It holds an authorization for one request
 * at a time, from before the handler until the answer is delivered. It may count the requests that
 * buy nothing.
 */
export interface ReservingFacilitator extends Facilitator, Reservations, Partial<VisitCounter> {
  /**
   * Resolves when configuration, chains and ledger have passed their checks.
   *
   * @throws one error that names every problem. It stays so until the process is started again.
   */
  ready(): Promise<void>;
  getSupported(): Promise<Supported>;
  /**
   * A secret that all processes of the facilitator's ledger share, of 32 random bytes. It binds
   * challenges to their terms.
   */
  challengeSecret?(): Promise<string>;
  /** Sales by payment channels, where they are served. */
  readonly channels?: ChannelSales | undefined;
  /**
   * The checks before a request's body is read. They ask no ledger. They ask a chain only where a
   * signature is none of the payer's key. The payer may have code that accepts it.
   *
   * `isSignatureKnown`, of a valid payment, is true if the signature is known to be good. The
   * payer's own key has signed, or the payment has begun. Otherwise only the payer's code can
   * decide.
   *
   * @throws FacilitatorError where the chain is unreachable, or the caller has asked too often.
   */
  verifyLocally(
    paymentPayload: AnyPaymentPayload,
    paymentRequirements: AnyPaymentRequirements,
    options?: VerifyOptions,
  ): Promise<VerifyResponse & { isSignatureKnown?: () => boolean | Promise<boolean> }>;
  /** All checks that a reservation depends on, with the balance that was read. */
  verify(
    paymentPayload: AnyPaymentPayload,
    paymentRequirements: AnyPaymentRequirements,
    options?: VerifyOptions,
  ): Promise<VerifyResponse & { balance?: BalanceReading | undefined }>;
}
