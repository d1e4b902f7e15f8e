import type { Address } from "../money/address.ts";
import type { AuthorizationId } from "../x402/authorization.ts";
import type { PaymentKind } from "../x402/payment.ts";
import type { InvalidReason } from "../x402/reason.ts";
import type { SettleResponse } from "../x402/settle-response.ts";

/** The right to run a handler for an authorization, and to settle it. Its token is secret. */
export interface Reservation {
  id: AuthorizationId;
  token: string;
}

/** A payer's balance, and the block at whose end it was read. */
export interface BalanceReading {
  amount: bigint;
  blockNumber: bigint;
}

/**
 * An answer that only its buyer can open. It is encrypted under a key derived from the buyer's
 * `Idempotency-Key`. A hash derived from the same key finds it.
 */
export interface SealedAnswer {
  keyHash: string;
  sealed: Uint8Array;
}

/** A request that wants to use an authorization. */
export interface ReservationRequest {
  id: AuthorizationId;
  /**
   * Identity of the request: a hash over method, URL, body, and the payment's terms (amount,
   * recipient, times). While an authorization is open it serves this request and no other. Other
   * terms under the same nonce must be another request.
   */
  fingerprint: string;
  /** Finds a kept answer, if the buyer sent an `Idempotency-Key`. */
  keyHash?: string | undefined;
}

/** The protocol and version of a request's payment. */
export type WireName = "x402v1" | "x402v2" | "mpp";

/** Purchased item, for the seller's records. */
export interface SoldItem {
  /** The route, as the seller wrote it. */
  route: string;
  /** Path of the resource, without a query. */
  resource: string;
  wire: WireName;
  /** The route's promise to give it back where it is settled and not delivered. */
  refund?: { afterSeconds: number; includeAbandoned: boolean } | undefined;
}

/** State of an authorization, for a request that brings it. */
export type LookUp =
  /** Never seen, or released before: go on. */
  | { state: "free" }
  /** Open for another request, or for the same one which still runs. */
  | { state: "in_use" }
  /** The buyer's idempotency key already belongs to another payment or another request. */
  | { state: "key_conflict" }
  /** Under way on the chain, or settled and not delivered: this request may resume it. */
  | { state: "resumable" }
  /** Settled and delivered. The kept answer, when this request brought the key to it. */
  | { state: "delivered"; settlement: SettleResponse; answer?: SealedAnswer | undefined }
  /** Settled, and given back, or about to be: it buys nothing any more. */
  | { state: "refunded"; settlement: SettleResponse };

/**
 * Limit of handler runs for one payment, over all processes. A reservation whose process dies
 * counts as a run. For a paid payment, a record may allow two further runs, each after such a
 * death.
 */
export const maxHandlerRuns = 2;

/** Outcome of an attempt to reserve. */
export type Reserved =
  | { state: "reserved"; reservation: Reservation }
  /**
   * Resumed by the same request. Calling `settle` with the reservation waits for the outcome or
   * returns the existing one, and never pays twice. Then `answer` goes out. If none was kept and it
   * `mayRun`, the handler runs once more.
   */
  | {
      state: "resumed";
      reservation: Reservation;
      /**
       * True if the payment was reserved with a key, which this request has brought again. Without
       * one, a request with any key resumes it: that key opens nothing, and closes nothing.
       */
      isKeyed: boolean;
      answer?: SealedAnswer | undefined;
      /** False once the handler has run for it as often as allowed: see `maxHandlerRuns`. */
      mayRun: boolean;
    }
  /**
   * Never paid, and its handler has run `maxHandlerRuns` times: another authorization is needed.
   */
  | { state: "used_up" }
  /**
   * The payer has let too many handlers run without payment. Nothing was reserved, no money moves.
   */
  | {
      state: "payer_limited";
      /** Delay until this payer may try again. */
      retryAfterSeconds: number;
      /**
       * The payer's own running requests cause the limit: once they are paid for, it need not wait.
       */
      isRunning: boolean;
    }
  | Exclude<LookUp, { state: "free" } | { state: "resumable" }>
  /** The payer's balance is committed to other payments. */
  | { state: "refused"; reason: InvalidReason; message?: string | undefined };

/** Reasons why a reservation ends without a delivered answer. */
export type ReleaseCause =
  /** Abandoned before the handler was called. */
  | "unused"
  | "handler_failed"
  | "waived"
  | "disconnected"
  | "refused"
  /** `settle` threw, or its outcome is still pending. */
  | "outcome_unknown";

/**
 * Decides which request may run a handler for an authorization, once for all processes that share
 * the record. Every reservation ends with one `deliver` or one `release`. Every method throws on
 * faults of the record itself, and a throw reserves nothing.
 */
export interface Reservations {
  /** State of an authorization. Changes nothing. */
  lookUp(request: ReservationRequest): Promise<LookUp>;
  /**
   * Takes the authorization for one request, or returns its present state. One of two racers wins.
   */
  reserve(
    request: ReservationRequest & {
      /** Transferred amount, in the token's smallest unit. */
      value: bigint;
      /** Unix seconds: the end of the time in which it can be settled. */
      validBefore: bigint;
      /**
       * Recipient, in lower case: distinguishes the authorization from another one with its nonce.
       */
      payTo: Address;
      /** The payer's balance, where the record can hold commitments against it. */
      balance?: BalanceReading | undefined;
      /** Payment kind. Default `eip3009`. */
      kind?: PaymentKind | undefined;
      /** Purchased item. Kept with the payment; decides nothing. */
      sold?: SoldItem | undefined;
    },
  ): Promise<Reserved>;
  /**
   * Gives up a reservation that has not been given to `settle`; afterwards the same payment may try
   * again. For one that has, and for a resumed one, it only ends this attempt. The payment stays as
   * it is on the chain, and the same request may resume it. `hasRun`, by default true: the handler
   * has run for it, which counts against `maxHandlerRuns`. A ledger counts runs for a payment that
   * was given to `settle` by itself (`runsHandler`).
   */
  release(
    reservation: Reservation,
    cause: ReleaseCause,
    options?: { hasRun?: boolean },
  ): Promise<void>;
  /**
   * Resolves to whether the reservation is still its caller's. Another process may have taken it
   * from one that was frozen, and delivered the answer. Called before an answer goes out that is
   * delivered once. Without it, a reservation is its caller's until it ends.
   */
  isHeld?(reservation: Reservation): Promise<boolean>;
  /** Records that the answer has gone out: the authorization is used up. */
  deliver(reservation: Reservation): Promise<void>;
}

/** State of a store's record when a settlement begins. */
export type BegunSettlement =
  /** Settled before: the facilitator is not asked again. */
  | { state: "settled"; settlement: SettleResponse }
  | {
      /** `repeated`: begun before, and its outcome never became known. */
      state: "begun" | "repeated";
      /** Idempotency key for the facilitator: constant for one authorization, and unique to it. */
      idempotencyKey: string;
    };

/**
 * Reservations on behalf of a facilitator without its own. They live on the seller's side, with the
 * record of that facilitator's answers.
 */
export interface ReservationStore extends Reservations {
  /**
   * Records that settling begins, and keeps the answer: from here on `release` gives nothing up.
   */
  beginSettlement(
    reservation: Reservation,
    answer?: SealedAnswer | undefined,
  ): Promise<BegunSettlement>;
  /**
   * Records the outcome: settled, or refused, after which the same payment may try again. It is not
   * called while the outcome is unknown.
   */
  endSettlement(reservation: Reservation, settlement: SettleResponse): Promise<void>;
}
