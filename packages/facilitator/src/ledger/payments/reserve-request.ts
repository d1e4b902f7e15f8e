import type {
  Address,
  BalanceReading,
  PaymentKind,
  ReservationRequest,
  SealedAnswer,
  SoldItem,
} from "@coinslot/protocol";
import type { LedgerPayment } from "./ledger-payment.ts";
import type { TransferOrder } from "./transfer-order.ts";

/** A request to reserve, with the ledger's own part of the row. */
export interface ReserveRequest extends ReservationRequest {
  value: bigint;
  validBefore: bigint;
  payTo: Address;
  balance?: BalanceReading | undefined;
  /** A block above that of the balance from which an execution is searched. */
  unusedAtBlock?: bigint | undefined;
  kind?: PaymentKind | undefined;
  sold?: SoldItem | undefined;
  /** Identity of the row, if a new one is written. */
  paymentId: string;
  /** Becomes the secret of the reservation. */
  token: string;
  /** With an order the payment is queued at once: no handler runs for it first. */
  order?: TransferOrder | undefined;
  /**
   * The most gas that its transaction may use, where the payer has code. It must not share a
   * transaction with others. It is admitted only as far as the payer's record and the gas budget
   * allow.
   */
  gasAtRisk?: bigint | undefined;
}

/** A request as its caller makes it. The ledger adds the secret and the name of the row. */
export type ReserveWish = Omit<ReserveRequest, "paymentId" | "token">;

/** Reason and time for which a payer must wait. */
export interface PayerLimit {
  retryAfterMs: number;
  /** Its own requests stand in the way, and may be paid for at any moment. */
  isRunning: boolean;
}

/**
 * Reason why a payer with code must wait. It is its own open payments, or a minute since it
 * reserved a payment that was given up. Or it is gas, which others have at risk or which its own
 * payment took.
 */
export interface CodeLimit {
  why: "too_many_open" | "given_up" | "no_gas_left";
  retryAfterMs: number;
}

/** Result of a request to reserve. */
export type ReserveResult =
  | {
      outcome: "reserved";
      paymentId: string;
      token: string;
      /** Number of transactions that have carried it, if it has failed before. */
      attempts: number;
      unusedAtBlock: number | undefined;
    }
  | {
      outcome: "resumed";
      payment: LedgerPayment;
      token: string;
      answer?: SealedAnswer | undefined;
      /** True if the handler may run for it, where no answer is kept. */
      mayRun: boolean;
    }
  | { outcome: "in_use"; payment: LedgerPayment }
  | { outcome: "key_conflict" }
  | { outcome: "delivered"; payment: LedgerPayment; answer?: SealedAnswer | undefined }
  | { outcome: "refunded"; payment: LedgerPayment }
  | { outcome: "over_committed" }
  /** The payer's code has burnt gas; it is refused for this long. */
  | { outcome: "burnt_gas"; forMs: number }
  /** The payer has code, and there is no room for it now. */
  | ({ outcome: "code_limited" } & CodeLimit)
  /** Its handler has reached the maximum of runs for one payment. */
  | { outcome: "used_up" }
  | ({ outcome: "payer_limited" } & PayerLimit);
