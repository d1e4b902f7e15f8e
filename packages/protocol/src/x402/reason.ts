/** Reasons why a payment is invalid: the values of `invalidReason`. */
export const invalidReasons = [
  "invalid_payload",
  "invalid_payment_requirements",
  "invalid_x402_version",
  "unsupported_scheme",
  "invalid_network",
  "invalid_exact_evm_network_mismatch",
  "invalid_exact_evm_missing_eip712_domain",
  "invalid_exact_evm_recipient_mismatch",
  "invalid_exact_evm_payload_authorization_value_mismatch",
  "invalid_exact_evm_payload_authorization_valid_before",
  "invalid_exact_evm_payload_authorization_valid_after",
  "invalid_exact_evm_signature",
  "invalid_exact_evm_nonce_already_used",
  "invalid_exact_evm_token_name_mismatch",
  "invalid_exact_evm_token_version_mismatch",
  "invalid_exact_evm_eip3009_not_supported",
  "asset_not_deployed_contract",
  "invalid_exact_evm_insufficient_balance",
  "invalid_exact_evm_transaction_simulation_failed",
  "payer_not_accepted",
  "unexpected_verify_error",
] as const;

/** Reason why a payment is invalid. */
export type InvalidReason = (typeof invalidReasons)[number];

/**
 * Reasons why a payment was not settled: the values of `errorReason`, besides every
 * `InvalidReason`.
 */
export const settleErrorReasons = [
  "duplicate_settlement",
  "settlement_pending",
  "payment_refunded",
  "invalid_exact_evm_transaction_failed",
  "invalid_exact_evm_transfer_event_mismatch",
  "unexpected_settle_error",
] as const;

/** Reason why a payment was not settled. */
export type SettleErrorReason = (typeof settleErrorReasons)[number] | InvalidReason;
