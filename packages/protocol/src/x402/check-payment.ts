import type { Payment } from "./payment.ts";
import type { InvalidReason } from "./reason.ts";

/** Least time, in seconds, that an authorization must have left for its settlement to be mined. */
export const minimumSettlementSeconds = 6;

/** An authorization may be valid for so many seconds from now, or twice what was asked for. */
const maxValiditySeconds = 24 * 60 * 60;

/**
 * The checks of an exact EIP-3009 payment that need nobody's help: recipient, value and times, in
 * this order. The signature and the chain are somebody else's.
 *
 * @returns why the payment is refused, or `undefined` when nothing speaks against it so far.
 */
export function checkPayment(
  payment: Payment,
  options: {
    /** Unix milliseconds. */
    now: number;
    /** What is granted to the handler before settling begins. */
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
  // What nobody can ever call over would be watched for ever once it has failed.
  const longest = BigInt(Math.max(2 * maxTimeoutSeconds, maxValiditySeconds));
  if (authorization.validBefore > nowSeconds + longest) {
    return "invalid_exact_evm_payload_authorization_valid_before";
  }
  if (authorization.validAfter > nowSeconds) {
    return "invalid_exact_evm_payload_authorization_valid_after";
  }
  return undefined;
}
