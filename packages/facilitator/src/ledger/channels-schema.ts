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
 * One row per channel: what this ledger charged on it. No index has a column that a charge changes,
 * so PostgreSQL updates in place.
 */
export interface ChannelsTable extends ChannelColumns {
  /** All that was charged, in the token's smallest unit. A claim asks for it. */
  charged: StoredAmount;
  /** Of the voucher that covers `charged`; `null` before the first charge. */
  ceiling: StoredAmount | null;
  /** Of the same voucher, as it came. */
  signature: Hex | null;
  /** The voucher before that one, where it is known. */
  before_ceiling: StoredAmount | null;
  before_signature: Hex | null;
  /** The highest ceiling that is accepted: no payer can take that back before a claim. */
  secure: StoredAmount;
  /** Charged, and no longer to be claimed. */
  lost: StoredAmount;
  /** 1: a refund is reserved, or in a transaction. Nothing is charged. */
  refunding: number;
  /** Held by the one request whose handler may run; `null` where none has reserved. */
  running_token: string | null;
  /** The process that holds the token. */
  running_owner: string | null;
  /** The last charge; `null` before the first one, and after a reversal. */
  last_id: string | null;
  last_fingerprint: string | null;
  last_key_hash: string | null;
  last_amount: StoredAmount | null;
  last_at: number | null;
  /** When its answer has gone out. */
  last_delivered_at: number | null;
  /** The process that holds its answer; `null`: any process may hand it over again. */
  last_owner: string | null;
  /** Runs of its handler that have begun. */
  last_runs: Generated<number>;
}

/** Terms of a channel, written once. */
export interface ChannelTermsTable extends ChannelColumns {
  payer: Address;
  payer_authorizer: Address;
  receiver: Address;
  receiver_authorizer: Address;
  token: Address;
  /** Seconds. */
  withdraw_delay: number;
  salt: Hex;
  created_at: number;
}

/** Channels with unclaimed money: the planner and the start read these alone. */
export interface ChannelDuesTable extends ChannelColumns {
  since: number;
  /** Why the last trial of its claim failed; `null` without one since its last claim. */
  refusal: string | null;
  refused_at: number | null;
}

/** The answer of a channel's last charge, where its buyer has brought a key. */
export interface ChannelAnswersTable extends ChannelColumns {
  charge_id: string;
  /** Encrypted under the buyer's key. */
  sealed: Uint8Array;
  expires_at: number;
}
