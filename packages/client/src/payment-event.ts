import type { SettleResponse } from "@coinslot/protocol";
import type { PaymentTerms } from "./sign/signed-payment.ts";
import type { OfferedWay } from "./wires/wire.ts";

/**
 * Progress of a payment.
 *
 * ```
 * offered -> booked -> signed -> sent -> settled
 *               |         |       |  |-> rejected
 *               v         v       |  `-> unclear -> sent (resume)
 *            released <-----------'
 * ```
 *
 * - `booked`: its amount counts against the budget, and is on disk if the budget has a file.
 *   Nothing is signed before.
 * - `signed`: exactly one authorization exists. No other is ever signed in its place.
 * - `sent`: an attempt begins, the first or a repeated one, with the same authorization.
 * - `settled`: the seller's receipt says that the tokens moved.
 * - `rejected`: the seller answered with another 402. It could still execute the authorization
 *   until that expires, so the booking stays.
 * - `unclear`: the outcome is unknown. The booking stays, and the payment may be resumed.
 * - `released`: signing failed, the caller aborted before the first attempt, or no attempt came as
 *   far as a connection. Moreover `beforeSend`, which may keep a payment, did not get it. The
 *   booking is gone. One that stays is released later, when the budget needs the room and the chain
 *   shows that it expired unused.
 */
export type PaymentState =
  | "booked"
  | "signed"
  | "sent"
  | "settled"
  | "rejected"
  | "unclear"
  | "released";

/** A payment's change of state. Holds nothing secret, so it may be logged. */
export interface PaymentEvent {
  state: PaymentState;
  /** The seller's host, with its port. */
  host: string;
  terms: PaymentTerms;
  /** The offer that it pays, in the seller's words; with `booked`. */
  offer?: Pick<OfferedWay, "protocol" | "description"> | undefined;
  /** Number of the attempt that begins, from 1; with `sent`. */
  attempt?: number | undefined;
  receipt?: SettleResponse | undefined;
  /** The seller's reason for rejecting the payment. */
  reason?: string | undefined;
}
