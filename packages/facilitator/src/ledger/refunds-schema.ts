import type { Address, Hex, Network } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";

/** State of a refund. README.md, "Refunds", lists the possible transitions. */
export type RefundState =
  /** Waits for its payment to be final, or for an earlier refund of it. */
  | "scheduled"
  /** Cannot be signed now; `cause` says why. Goes on by itself. */
  | "waiting"
  /** No float account signs here: waits for a signature made elsewhere. */
  | "unsigned"
  /** Its payer has code: waits for the operator's word. */
  | "review"
  /** The token refuses the transfer: paused, or the payer is on its list. */
  | "blocked"
  /** The token has no EIP-3009: waits for a transaction of the operator. */
  | "manual"
  /** Signed and given to the engine, or executed before, and not yet in a block deep enough. */
  | "sent"
  /** Its `Transfer` is in a block, `serveAfter` deep. */
  | "confirmed"
  /** Its `Transfer` is final. */
  | "final"
  /** Moves no money, ever: its payment was never executed, or is given back already. */
  | "void";

/** Every state. */
export const refundStates = [
  "scheduled",
  "waiting",
  "unsigned",
  "review",
  "blocked",
  "manual",
  "sent",
  "confirmed",
  "final",
  "void",
] as const satisfies readonly RefundState[];

/** The states in which an operator, or money, is needed. */
export const needsHelp = [
  "waiting",
  "unsigned",
  "review",
  "blocked",
  "manual",
] as const satisfies readonly RefundState[];

/** The states in which a refund moves no more. */
export const endedRefundStates = ["final", "void"] as const satisfies readonly RefundState[];

/** Reason of a state, for operators. */
export type RefundCause =
  | "payment_not_final"
  | "earlier_refund"
  | "float_balance"
  | "daily_limit"
  | "stopped"
  | "signer"
  | "chain"
  | "no_float"
  | "payer_has_code"
  | "token_refuses"
  | "fails_in_blocks"
  | "no_eip3009"
  | "cancelled"
  | "executed_elsewhere"
  | "operator_paid"
  | "payment_not_executed"
  | "nothing_left";

/** One row per refund: the n-th of its payment. */
export interface RefundsTable {
  /** Sorts by time of creation. */
  id: string;
  payment_id: string;
  /** From 1. Part of the nonce. One that was never signed loses its number to the next. */
  n: number;
  network: Network;
  asset: Address;
  /** The payer of the payment, to whom it goes. */
  payer: Address;
  /** EIP-3009 nonce of its authorization: a function of the payment and of `n` alone. */
  nonce: Hex;
  /** The amount asked for; `null`: all that was left. */
  requested: StoredAmount | null;
  /** The amount that it moves. That of its `Transfer`, where it was found executed. */
  amount: StoredAmount;
  state: RefundState;
  cause: RefundCause | null;
  /** `operator`, or `undelivered`: by the policy of its route. */
  origin: "operator" | "undelivered";
  /** In words, of its operator. */
  reason: string | null;
  idempotency_key: string | null;
  /** The account that has signed it last. */
  float: Address | null;
  /** Unix seconds: end of the last authorization. */
  valid_before: StoredAmount | null;
  /** Its row of `payments`; `null` before it is signed, and where it was executed elsewhere. */
  operation_id: string | null;
  transaction_hash: Hex | null;
  block_number: number | null;
  block_hash: Hex | null;
  created_at: number;
  /** When the worker looks at it next. */
  next_at: number;
  /** When the operator has let a refund under `review` go. */
  approved_at: number | null;
  /** When it was first signed: the day of its limit. */
  signed_at: number | null;
  confirmed_at: number | null;
  final_at: number | null;
}

/**
 * Payments that are given back by themselves unless they are delivered. A trigger writes a row when
 * one is confirmed; the refunds' worker deletes it.
 */
export interface RefundablePaymentsTable {
  payment_id: string;
  due_at: number;
}
