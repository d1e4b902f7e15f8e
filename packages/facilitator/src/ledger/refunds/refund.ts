import type { Address, Hex, Network } from "@coinslot/protocol";
import type { RefundCause, RefundState } from "../refunds-schema.ts";

/** A request for a refund. */
export interface CreateRefund {
  /** Id of the payment in the ledger. */
  payment: string;
  /** In the token's smallest unit. Default: all that is left of the payment. */
  amount?: bigint | undefined;
  /** In words, for the records. At most 500 characters. */
  reason?: string | undefined;
  /**
   * 1 to 128 characters. Equal calls with the same key make one refund, and return it. Another
   * payment, amount or reason under it is an error.
   */
  idempotencyKey: string;
}

/** A refund as recorded in the ledger. Without its signature: it may be shown. */
export interface Refund {
  /** Sorts by time of creation. */
  id: string;
  /** Id of the refunded payment. */
  payment: string;
  /** The n-th refund of that payment, from 1. */
  n: number;
  network: Network;
  asset: Address;
  /** Its recipient: the payer of the payment. */
  payer: Address;
  /** In the token's smallest unit. That of its `Transfer`, where one was found executed. */
  amount: bigint;
  /** The amount asked for; `undefined`: all that was left. */
  requested: bigint | undefined;
  state: RefundState;
  cause: RefundCause | undefined;
  /** `undelivered`: by the policy of its route. */
  origin: "operator" | "undelivered";
  reason: string | undefined;
  /** Of its EIP-3009 authorization. */
  nonce: Hex;
  /** The account that pays it, once one has signed. */
  float: Address | undefined;
  /** Unix seconds: end of its last authorization. */
  validBefore: bigint | undefined;
  /** Id of its operation among the payments, once it is signed. */
  operation: string | undefined;
  transactionHash: Hex | undefined;
  blockNumber: number | undefined;
  /** Unix milliseconds, like all that follow. */
  createdAt: number;
  signedAt: number | undefined;
  confirmedAt: number | undefined;
  finalAt: number | undefined;
}

/** Filter for a list of refunds. */
export interface RefundFilter {
  /** Id of a payment. */
  payment?: string | undefined;
  /** In any letter case. */
  payer?: Address | undefined;
  network?: Network | undefined;
  state?: RefundState | undefined;
  /** The `nextCursor` of the page before. */
  cursor?: string | undefined;
  /** Between 1 and 1000. Default 100. */
  limit?: number | undefined;
}

/** One page of refunds, the newest first. */
export interface RefundPage {
  refunds: Refund[];
  /** Pass it as `cursor` for the next page; `undefined` on the last one. */
  nextCursor: string | undefined;
}
