import type { Address, Hex, Network } from "@coinslot/protocol";
import type { StoredAmount, StoredSum } from "@coinslot/storage";
import type { Generated } from "kysely";

/**
 * Charges of one channel on one day and route, added up: the books of a channel do not grow with
 * its requests. Amounts only rise. The row of a channel is locked by who writes them.
 */
export interface ChannelSumsTable {
  network: Network;
  contract: Address;
  channel_id: Hex;
  /** Whole days since 1970, in UTC, on the database's clock: never in a closed period. */
  day: number;
  /** A name of `sold_names`; 0 where no charge of this ledger names it. */
  route_id: number;
  /** 1: taken back from charges, from `income` to `receivable`. 0: the other way. */
  is_reversal: number;
  count: StoredAmount;
  amount: StoredAmount;
}

/** Charges of all channels of a token on one day and route: the sums of `channel_sums`. */
export interface ChargeSumsTable {
  /** Whole days since 1970, in UTC. */
  day: number;
  network: Network;
  asset: Address;
  /** A name of `sold_names`, or 0. */
  route_id: number;
  is_reversal: number;
  count: StoredSum;
  amount: StoredSum;
}

/**
 * Changes of `channel_sums` that the sums do not contain yet. Written by triggers, never changed.
 */
export interface ChargeChangesTable extends ChannelSumsTable {
  id: Generated<number>;
  asset: Address;
  /** Before the change; 0 where there was no row. */
  old_count: StoredAmount;
  old_amount: StoredAmount;
}

/**
 * One row. The rows of `channel_sums` up to this key are in the sums; with `is_whole`, all of them.
 */
export interface ChargeSumsProgressTable {
  network: Network | "";
  contract: Address | "";
  channel_id: Hex | "";
  day: number;
  route_id: number;
  is_reversal: number;
  is_whole: number;
}

/**
 * Claimed money that a contract has sent to a recipient: one row per `Settled`, once it is final.
 */
export interface ChannelPayoutsTable {
  /** Sorts by time of posting. */
  id: string;
  network: Network;
  contract: Address;
  receiver: Address;
  token: Address;
  amount: StoredAmount;
  transaction_hash: Hex;
  log_index: number;
  block_number: number;
  block_hash: Hex;
}

/** The last block whose payouts are posted. One row per network and contract. */
export interface ChannelPayoutProgressTable {
  network: Network;
  contract: Address;
  block_number: number;
}

/** Tables of channels in the books. `../books/README.md` gives their rules. */
export interface ChannelBookTables {
  channel_sums: ChannelSumsTable;
  charge_sums: ChargeSumsTable;
  charge_changes: ChargeChangesTable;
  charge_sums_progress: ChargeSumsProgressTable;
  channel_payouts: ChannelPayoutsTable;
  channel_payout_progress: ChannelPayoutProgressTable;
}
