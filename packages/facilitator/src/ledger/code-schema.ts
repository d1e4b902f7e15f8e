import type { Address, Network } from "@coinslot/protocol";
import type { Generated } from "kysely";

/** Payers with code that have burnt gas: refused for a time. One row per payer, on all networks. */
export interface CodePayersTable {
  payer: Address;
  refused_until: number;
  /** Sum over all gas that it has burnt. */
  gas_burnt: number;
}

/** One row per network: the lock under which the gas budget of payers with code is spent. */
export interface CodeBudgetsTable {
  network: Network;
}

/**
 * Gas that payments of payers with code may burn, spent from the budget before a handler runs for
 * them.
 */
export interface CodeGasTable {
  payment_id: string;
  network: Network;
  gas: number;
  spent_at: number;
  /** 1: its payer's record vouches for it. */
  is_vouched: Generated<number>;
  /**
   * The part of it that a transaction of ours has burnt in vain. Where the money moved, the part
   * beyond an ordinary call. `null` while unknown: all of it counts, until it is confirmed.
   */
  burnt: number | null;
}

/**
 * Records of payers with code: one row per payer and network, once a payment is confirmed there.
 */
export interface CodeRecordsTable {
  payer: Address;
  network: Network;
  /** End of the payer's last refusal when the count began. A later one ends the record. */
  counts_from: number;
  confirmed: number;
}
