import type { Address, Hex, Network } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import type { Generated } from "kysely";

/** The call of the escrow that a caller asks for. */
export type CallerCallKind = "claim" | "settle" | "refund";

/**
 * `sent`: its transaction may execute it. `done`: it has, `serveAfter` deep. `failed`: its
 * transaction has ended without it.
 */
export type CallerCallState = "sent" | "done" | "failed";

/**
 * A call of the escrow that a caller of a hosted facilitator asked for. Nothing of it is sold here.
 */
export interface CallerCallsTable {
  network: Network;
  /** The escrow. */
  contract: Address;
  /** Hash of its content: a repeated request finds it again. */
  id: Hex;
  /** Owner of the API key. */
  caller: string;
  kind: CallerCallKind;
  /**
   * One call of a subject is `sent` at a time: a channel's refund, a receiver's settle in a token.
   */
  subject: string;
  state: CallerCallState;
  /** The last one that carried it. */
  transaction_id: string;
  /** Transaction that has ended it. */
  hash: Hex | null;
  /** Settled or refunded, in the token's smallest unit. */
  amount: StoredAmount | null;
  /** Rows that were left out of a claim, in words. */
  left_out: string | null;
  created_at: number;
  ended_at: number | null;
}

/** Gas that a caller has at stake, a row per transaction. Rows of the last hour count. */
export interface CallerGasTable {
  id: string;
  network: Network;
  caller: string;
  gas: number;
  created_at: number;
  /** 1: of a deposit or a refund, which buyers ask for. They may use half of the caller's share. */
  by_buyer: Generated<number>;
}

/** Tables of what callers of a hosted facilitator ask for. */
export interface CallerTables {
  caller_calls: CallerCallsTable;
  caller_gas: CallerGasTable;
}
