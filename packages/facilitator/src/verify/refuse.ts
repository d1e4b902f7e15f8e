import type { Address, InvalidReason } from "@coinslot/protocol";
import type { Refused } from "./verdict.ts";

/** Meaning of each reason for its reader. */
const words: Record<InvalidReason, string> = {
  invalid_payload: "The payment payload does not have the right shape.",
  invalid_payment_requirements: "The payment requirements cannot be paid here.",
  invalid_x402_version: "x402Version must be 1 or 2.",
  unsupported_scheme: 'Only the scheme "exact" with EIP-3009 transfers is served.',
  invalid_network: "This network is not served here.",
  invalid_exact_evm_network_mismatch: "The payment is for another network than the requirements.",
  invalid_exact_evm_missing_eip712_domain:
    "The payment requirements lack extra.name and extra.version, the token's EIP-712 domain.",
  invalid_exact_evm_recipient_mismatch: "The authorization pays another recipient than payTo.",
  invalid_exact_evm_payload_authorization_value_mismatch:
    "The authorization is not over the required amount.",
  invalid_exact_evm_payload_authorization_valid_before:
    "The authorization has expired, expires before it can be settled, or is valid for longer than a day and than twice maxTimeoutSeconds.",
  invalid_exact_evm_payload_authorization_valid_after: "The authorization is not valid yet.",
  invalid_exact_evm_signature: "The signature is not the payer's.",
  invalid_exact_evm_nonce_already_used: "The authorization has been used or cancelled.",
  invalid_exact_evm_token_name_mismatch:
    "extra.name is not the name in the token's EIP-712 domain.",
  invalid_exact_evm_token_version_mismatch:
    "extra.version is not the version in the token's EIP-712 domain.",
  invalid_exact_evm_eip3009_not_supported: "The asset has no EIP-3009 transfers.",
  asset_not_deployed_contract: "The address of the asset has no contract.",
  invalid_exact_evm_insufficient_balance: "The payer's balance is below the amount.",
  invalid_exact_evm_transaction_simulation_failed: "The simulated transfer fails.",
  payer_not_accepted: "Payments of this payer are not accepted here.",
  unexpected_verify_error: "The payment could not be checked.",
};

/** Refuses a payment; `message` where the reason alone says too little. */
export function refuse(
  invalidReason: InvalidReason,
  { payer, message }: { payer?: Address | undefined; message?: string | undefined } = {},
): Refused {
  return {
    isValid: false,
    invalidReason,
    invalidMessage: message ?? words[invalidReason],
    ...(payer === undefined ? {} : { payer }),
  };
}
