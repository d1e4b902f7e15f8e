import type { Address, Hex, Network } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import type { Generated } from "kysely";

/**
 * `open`: not every payment in it has its outcome yet. `settled`: a block holds one of its hashes,
 * and every payment has its outcome. `final`: at depth. `lost`: its nonce was used by a transaction
 * that is not ours.
 */
export type TransactionState = "open" | "settled" | "final" | "lost";

/** One row per used nonce of a relayer. */
export interface TransactionsTable {
  id: string;
  network: Network;
  relayer: Address;
  nonce: number;
  state: TransactionState;
  /** Epoch of the lease under which it was stored. */
  epoch: number;
  gas_limit: number;
  created_at: number;
  /** The hash that a block holds, and that block. */
  hash: Hex | null;
  block_number: number | null;
  block_hash: Hex | null;
  gas_used: number | null;
  /** Native coin that it cost, in wei. `null` before its block, and where its price is unknown. */
  gas_cost: Generated<StoredAmount | null>;
}

/** Every signed form of a transaction: the first one and its replacements. Stored before sent. */
export interface BroadcastsTable {
  hash: Hex;
  transaction_id: string;
  raw: Hex;
  /**
   * `payments` carries the payments; `calls` makes calls of ours, such as a claim of channels;
   * `filler` only uses the nonce up.
   */
  content: "payments" | "calls" | "filler";
  max_fee_per_gas: StoredAmount;
  /** `null` in a transaction of the legacy type. */
  max_priority_fee_per_gas: StoredAmount | null;
  created_at: number;
}
