import type { Address, Hex, Network } from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import type { Generated } from "kysely";

/** Identity of a channel's row. Hex in lower case. */
interface ChannelColumns {
  network: Network;
  /** The escrow contract. */
  contract: Address;
  channel_id: Hex;
}

/**
 * Mirror of the chain, one row per channel: at the head, and at `finalAfter`. The watcher writes
 * it, and no charge waits for it.
 */
export interface ChannelStatesTable extends ChannelColumns {
  /** Claimed money included, in the token's smallest unit. */
  balance: StoredAmount;
  claimed: StoredAmount;
  /** Of a withdrawal that waits; `null` where none does. */
  withdraw_amount: StoredAmount | null;
  /** When it was started, in Unix seconds. */
  withdraw_at: number | null;
  refund_nonce: StoredAmount;
  block_number: number;
  block_hash: Hex;
  /** The same, where no reorganisation changes it any more. `null`: not read yet. */
  final_balance: StoredAmount | null;
  final_claimed: StoredAmount | null;
  final_number: number | null;
  final_hash: Hex | null;
  /** 1: read anew with each block, until the head's state is final. */
  is_moving: number;
  /**
   * The highest ceiling of a voucher that a claim has shown, and that covered more than it asked.
   */
  published: StoredAmount | null;
}

/**
 * `sent`: with a transaction whose end is not known. `done`: the chain has paid it, finally.
 * `failed`: its transaction has ended without it.
 */
export type ChannelClaimState = "sent" | "done" | "failed";

/** A row of a claim: one per channel and transaction. */
export interface ChannelClaimsTable extends ChannelColumns {
  transaction_id: string;
  /** The sum up to which it claims. */
  total_claimed: StoredAmount;
  /** Of the voucher that covers it. */
  ceiling: StoredAmount;
  signature: Hex;
  state: ChannelClaimState;
  created_at: number;
}

/** A transfer of what is claimed to its receiver. One row per transaction. */
export interface ChannelSettlesTable {
  transaction_id: string;
  network: Network;
  contract: Address;
  receiver: Address;
  token: Address;
  /** Owed to the receiver when it was signed. */
  amount: StoredAmount;
  created_at: number;
}

/**
 * `locked`: nothing is signed, or what was signed is void. `sent`: its signature is in a
 * transaction, and stays good until the escrow's nonce has passed. `done` and `failed`: ended.
 */
export type ChannelRefundState = "locked" | "sent" | "done" | "failed";

/** Money that goes back to a channel's payer. Its channel is locked until it has ended. */
export interface ChannelRefundsTable extends ChannelColumns {
  id: string;
  /** The account that asked for it: refunds are limited by it. */
  signer: Address;
  /** Charged so far, as the signer has signed it. */
  ceiling: StoredAmount;
  /** The part that was asked for; `null`: all. */
  asked: StoredAmount | null;
  /** Block at the lock. Events after it count. */
  since_number: number;
  state: ChannelRefundState;
  /** The escrow's nonce and the amount that are signed, while `sent`. */
  nonce: StoredAmount | null;
  amount: StoredAmount | null;
  transaction_id: string | null;
  /** Transaction of its event, as soon as the head has it. */
  hash: Hex | null;
  /** The sum of its events. */
  refunded: StoredAmount | null;
  /** Why it has failed. */
  reason: string | null;
  created_at: number;
  ended_at: number | null;
}

/**
 * `queued`: no transaction that a block may have carries it. `sent`: one may. `done`: executed, by
 * any sender, `serveAfter` deep; ended once that is final. `failed`: ended, and nothing moved here.
 */
export type ChannelDepositState = "queued" | "sent" | "done" | "failed";

/** Money of a payer that goes into its channel, by its EIP-3009 authorization. */
export interface ChannelDepositsTable extends ChannelColumns {
  token: Address;
  payer: Address;
  /** Of the authorization: a hash of the channel's id and a salt. */
  nonce: Hex;
  /** The account that signs the channel's vouchers: deposits are limited by it. */
  signer: Address;
  amount: StoredAmount;
  /** Unix seconds. */
  valid_before: StoredAmount;
  /** 1: the payer had code when it was queued. */
  has_code: number;
  /** The call of the escrow. `null` once it has ended: the signature is of no use any more. */
  data: Hex | null;
  /** The newest block when it was queued. Events after it count. */
  since_number: number;
  state: ChannelDepositState;
  /** Transactions that have carried it. */
  attempts: number;
  /** The last one of them. */
  transaction_id: string | null;
  /** Transaction that has executed it, of any sender. */
  hash: Hex | null;
  /** Why it has failed. */
  reason: string | null;
  created_at: number;
  ended_at: number | null;
  /** The caller of a hosted facilitator whose gas it takes; `null`: none. */
  caller: string | null;
  /** Limit of one of its transactions; 0 where it is not known. */
  gas: Generated<number>;
  /** 1: the payer's record vouches for it, in the gas budget of payers with code. */
  is_vouched: Generated<number>;
  /**
   * When its gas was last spent from that budget, by the database's clock. `null`: it counts there
   * no more, or never has.
   */
  spent_at: number | null;
  /** The block that has executed it. */
  block_number: number | null;
}

/** Last block whose events of a contract are stored. One row per network and contract. */
export interface ChannelWatchesTable {
  network: Network;
  contract: Address;
  /** Everything up to this block stands in the mirrors. */
  block_number: number;
  block_hash: Hex;
  /** Unix seconds. */
  block_time: number;
  /** Events are known without a gap from here on. An older mirror must be read anew. */
  since_number: number;
  /** By the database's clock, in Unix milliseconds. */
  seen_at: number;
}

/** Tables of channels that follow the chain. */
export interface ChannelChainTables {
  channel_states: ChannelStatesTable;
  channel_claims: ChannelClaimsTable;
  channel_settles: ChannelSettlesTable;
  channel_refunds: ChannelRefundsTable;
  channel_deposits: ChannelDepositsTable;
  channel_watches: ChannelWatchesTable;
}
