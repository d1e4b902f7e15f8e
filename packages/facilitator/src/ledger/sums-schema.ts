import type { Address, Network } from "@coinslot/protocol";
import type { StoredAmount, StoredSum } from "@coinslot/storage";
import type { Generated } from "kysely";

/** States in which a payment counts in the sums. */
export const endedStates = ["confirmed", "failed", "expired", "released"] as const;

export type EndedState = (typeof endedStates)[number];

/**
 * Number and sum of the payments that were created on a day and have ended in a state. Payments
 * that were deleted since stay in it.
 */
export interface PaymentSumsTable {
  /** Whole days since 1970, in UTC. */
  day: number;
  network: Network;
  asset: Address;
  /** A name of `sold_names`, or 0. */
  route_id: number;
  state: EndedState;
  count: number;
  amount: StoredSum;
  /** The part of them whose rows were deleted. */
  deleted_count: number;
  deleted_amount: StoredSum;
}

/** Changes of payments that the sums do not contain yet. Written by triggers, never changed. */
export interface PaymentChangesTable {
  id: Generated<number>;
  payment_id: string;
  day: number;
  network: Network;
  asset: Address;
  route_id: number;
  /** The state that the payment entered or left, or in which its row was deleted. */
  state: EndedState;
  value: StoredAmount;
  /** 1: entered. -1: left. 0: its row was deleted. */
  step: number;
}

/** Ended payments that are not confirmed, by state and id. Written by triggers. */
export interface UnpaidPaymentsTable {
  state: Exclude<EndedState, "confirmed">;
  payment_id: string;
}

/**
 * One row: the payments that were there before the sums. Those up to `summed_to` are summed, those
 * after it and up to `last_id` are not.
 */
export interface PaymentSumsProgressTable {
  summed_to: string;
  last_id: string;
}
