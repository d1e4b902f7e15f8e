import type { Comparison } from "../cycles/cycle.ts";

/** Reasons of a seller, the check that each names, and what it means where no member differs. */
const reasons: Readonly<Record<string, readonly [check: string, says: string]>> = {
  invalid_payload: ["form", "the payment's members do not have their form"],
  invalid_x402_version: ["version", "the payment is of another version than its header"],
  unsupported_scheme: ["scheme", "the seller does not take this scheme"],
  invalid_network: ["network", "the seller does not serve this network"],
  invalid_exact_evm_network_mismatch: ["network", "payment and offer name different networks"],
  invalid_exact_evm_missing_eip712_domain: ["domain name", "the offer names no EIP-712 domain"],
  invalid_exact_evm_recipient_mismatch: ["recipient", "signed in favour of another recipient"],
  invalid_exact_evm_payload_authorization_value_mismatch: ["amount", "signed for another amount"],
  invalid_exact_evm_payload_authorization_valid_before: [
    "valid until",
    "expired, too soon to settle after the handler, or good for too long",
  ],
  invalid_exact_evm_payload_authorization_valid_after: ["valid from", "not valid yet"],
  invalid_exact_evm_signature: ["signer", "the signature is not the payer's"],
  invalid_exact_evm_token_name_mismatch: ["domain name", "the token signs under another name"],
  invalid_exact_evm_token_version_mismatch: [
    "domain version",
    "the token signs under another version",
  ],
  invalid_exact_evm_nonce_already_used: [
    "nonce",
    "the chain has seen this nonce: the authorization was executed or cancelled before",
  ],
  invalid_exact_evm_insufficient_balance: [
    "balance",
    "the payer holds less than the amount, or has promised it to other payments",
  ],
  invalid_exact_evm_eip3009_not_supported: ["asset", "the token has no EIP-3009 transfers"],
  asset_not_deployed_contract: ["asset", "there is no contract at the token's address"],
  invalid_exact_evm_transaction_simulation_failed: [
    "simulation",
    "the token refuses the transfer, such as for a blocked account",
  ],
  "No matching payment requirements": [
    "terms",
    "the payment repeats terms that this route does not offer",
  ],
};

/**
 * Names the check for which a payment was refused: a member that differs, or else the seller's own
 * reason.
 *
 * @returns `undefined` where nothing differs, and the seller gave no reason
 */
export function nameFailure(
  comparisons: readonly Comparison[],
  refusal: { reason: string; says?: string | undefined } | undefined,
): { check: string; says: string } | undefined {
  const known = refusal === undefined ? undefined : lookUp(refusal.reason);
  const different = comparisons.filter(({ verdict }) => verdict === "differs");
  // The seller's reason may be the consequence of a difference: a wrong domain is a wrong signer.
  const differs = different.find(({ check }) => check === known?.[0]) ?? different[0];
  if (differs !== undefined) {
    const { check, member, offered, presented, note } = differs;
    const says = `${member}: offered ${offered}, presented ${presented}`;
    return { check, says: note === undefined ? says : `${says}. ${note}` };
  }
  if (refusal === undefined) return undefined;
  const [check, says] = known ?? ["seller", refusal.says ?? refusal.reason];
  return { check, says };
}

function lookUp(reason: string) {
  return Object.hasOwn(reasons, reason) ? reasons[reason] : undefined;
}
