const prefix = "invalid_batch_settlement_evm_";

/**
 * Error codes of the `batch-settlement` scheme, in the order of the checks. A check of a voucher
 * without a node returns them. The public specification has more.
 */
export const channelReasons = [
  `${prefix}channel_id_mismatch`,
  `${prefix}receiver_mismatch`,
  `${prefix}receiver_authorizer_mismatch`,
  `${prefix}token_mismatch`,
  `${prefix}withdraw_delay_mismatch`,
  `${prefix}voucher_signature`,
] as const;

/** Reason why a voucher is invalid. */
export type ChannelReason = (typeof channelReasons)[number];

/**
 * Error codes of a voucher that is good by itself, and buys nothing; those of deposits, of refunds
 * last.
 */
export const channelRefusalReasons = [
  `${prefix}payload_type`,
  `${prefix}channel_not_found`,
  `${prefix}cumulative_below_claimed`,
  `${prefix}cumulative_amount_mismatch`,
  `${prefix}cumulative_exceeds_balance`,
  `${prefix}erc3009_authorization_required`,
  `${prefix}deposit_below_min_deposit`,
  `${prefix}payload_authorization_valid_after`,
  `${prefix}payload_authorization_valid_before`,
  `${prefix}receive_authorization_signature`,
  `${prefix}insufficient_balance`,
  `${prefix}deposit_simulation_failed`,
  `${prefix}deposit_transaction_failed`,
  `${prefix}authorizer_not_configured`,
  `${prefix}refund_amount_invalid`,
  `${prefix}refund_no_balance`,
  `${prefix}refund_simulation_failed`,
  `${prefix}refund_transaction_failed`,
] as const;

/** Reason why a voucher that is good by itself buys or gives back nothing. */
export type ChannelRefusalReason = (typeof channelRefusalReasons)[number];

/**
 * Error codes of a hosted facilitator about calls of the escrow that a seller's server asks for,
 * beside those above.
 */
export const channelCallReasons = [
  "recipient_not_allowed",
  `${prefix}network_mismatch`,
  `${prefix}authorizer_address_mismatch`,
  `${prefix}channel_busy`,
  `${prefix}claim_simulation_failed`,
  `${prefix}claim_transaction_failed`,
  `${prefix}nothing_to_settle`,
  `${prefix}settle_simulation_failed`,
  `${prefix}settle_transaction_failed`,
] as const;

/** Reason why a hosted facilitator does not make a call of the escrow. */
export type ChannelCallReason = (typeof channelCallReasons)[number];
