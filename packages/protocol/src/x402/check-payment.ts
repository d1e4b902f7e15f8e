import type { Payment } from "./payment.ts";
import type { InvalidReason } from "./reason.ts";

/** Least time, in seconds, that an authorization must have left for its settlement to be mined. */
export const minimumSettlementSeconds = 6;

/**
 * Longest validity of an authorization, in seconds from now; or twice the requested time, if that
 * is longer.
 */
const maxValiditySeconds = 24 * 60 * 60;

/**
 * Offline checks of an exact EIP-3009 payment: recipient, value and times, in this order. Signature
 * and chain state are checked elsewhere.
 *
 * @returns the reason for the refusal, or `undefined` when these checks pass.
 */
export function checkPayment(
  payment: Payment,
  options: {
    /** Unix milliseconds. */
    now: number;
    /** Time granted to the handler before settling begins. */
    handlerTimeoutSeconds?: number | undefined;
    /** Longest usual time between two blocks of the network. */
    blockTimeSeconds?: number | undefined;
  },
): InvalidReason | undefined {
  const { authorization, payTo, amountRequired, x402Version, maxTimeoutSeconds } = payment;
  if (authorization.to !== payTo) return "invalid_exact_evm_recipient_mismatch";
  const isEnough =
    x402Version === 1
      ? authorization.value >= amountRequired
      : authorization.value === amountRequired;
  if (!isEnough) return "invalid_exact_evm_payload_authorization_value_mismatch";

  const nowSeconds = BigInt(Math.floor(options.now / 1000));
  const settlement = Math.max(minimumSettlementSeconds, 2 * (options.blockTimeSeconds ?? 0));
  const granted = Math.ceil(settlement + (options.handlerTimeoutSeconds ?? 0));
  if (authorization.validBefore <= nowSeconds + BigInt(granted)) {
    return "invalid_exact_evm_payload_authorization_valid_before";
  }
  // An authorization that practically never expires would be watched for ever once it has failed.
  const longest = BigInt(Math.max(2 * maxTimeoutSeconds, maxValiditySeconds));
  if (authorization.validBefore > nowSeconds + longest) {
    return "invalid_exact_evm_payload_authorization_valid_before";
  }
  if (authorization.validAfter > nowSeconds) {
    return "invalid_exact_evm_payload_authorization_valid_after";
  }
  return undefined;
}
