import type { Address, Hex } from "@coinslot/protocol";

/** Sender of a trial, so that the called code sees the same values as in a transaction. */
export interface TrialSender {
  /** The relayer: it is `tx.origin` then. */
  from: Address;
  /** Wei per gas. `undefined` where none is known. */
  gasPrice: bigint | undefined;
  /** The relayer's balance in wei. `undefined` where it is not known. */
  balance: bigint | undefined;
}

/**
 * A price that the next blocks take, from the base fee of the newest; `undefined` on a chain
 * without EIP-1559.
 */
export function trialPrice(baseFeePerGas: bigint | undefined): bigint | undefined {
  return baseFeePerGas === undefined ? undefined : 2n * baseFeePerGas + 1n;
}

/**
 * The members of a call object that name its sender. A gas price is named only where the sender can
 * pay all of the call's gas at it. A node refuses the call otherwise.
 */
export function senderFields(
  sender: TrialSender | undefined,
  gas: bigint,
): { from?: Address; gasPrice?: Hex } {
  if (sender === undefined) return {};
  const { from, gasPrice, balance } = sender;
  const isAffordable =
    gasPrice !== undefined && gasPrice > 0n && (balance === undefined || gas * gasPrice <= balance);
  return isAffordable ? { from, gasPrice: `0x${gasPrice.toString(16)}` } : { from };
}
