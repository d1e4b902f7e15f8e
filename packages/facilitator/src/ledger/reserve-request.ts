import type { Address, BalanceReading, ReservationRequest, SealedAnswer } from "@coinslot/protocol";
import type { LedgerPayment } from "./ledger-payment.ts";
import type { Order } from "./order.ts";

/** A wish to reserve, with what the ledger writes for it. */
export interface ReserveRequest extends ReservationRequest {
  value: bigint;
  validBefore: bigint;
  payTo: Address;
  balance?: BalanceReading | undefined;
  /** Identity of the row, if a new one is written. */
  paymentId: string;
  /** Becomes the secret of the reservation. */
  token: string;
  /** With an order the payment is queued at once: nobody runs a handler for it first. */
  order?: Order | undefined;
  /** It must not share a transaction with others. */
  isAlone?: boolean | undefined;
}

/** What became of the wish. */
export type ReserveResult =
  | {
      outcome: "reserved";
      paymentId: string;
      token: string;
      /** How many transactions have carried it, if it has failed before. */
      carried: number;
      unusedAtBlock: number | undefined;
    }
  | { outcome: "resumed"; payment: LedgerPayment; token: string; answer?: SealedAnswer | undefined }
  | { outcome: "in_use"; payment: LedgerPayment }
  | { outcome: "key_conflict" }
  | { outcome: "delivered"; payment: LedgerPayment; answer?: SealedAnswer | undefined }
  | { outcome: "over_promised" }
  | { outcome: "released_too_often" };
