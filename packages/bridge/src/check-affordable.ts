import { BridgeError } from "./bridge-error.ts";
import type { BridgeContext } from "./bridge-options.ts";
import type { TransferPlan } from "./plan-transfer.ts";

/**
 * Holds a plan against what the account has, and against what it may cost at most.
 *
 * @param feeSpent what this transfer has cost already: the gas of its approvals, in the native coin
 * @throws BridgeError `insufficient_balance`, `bridge_fee_above_maximum`, `total_fee_above_maximum`,
 * `insufficient_native_balance`
 */
export function checkAffordable(
  { bridgeMaxFee, maxTotalFee }: Pick<BridgeContext, "bridgeMaxFee" | "maxTotalFee">,
  plan: TransferPlan,
  feeSpent: bigint,
): void {
  const { fee, bridgeFee, amountSent, tokenBalance, nativeBalance, amountInNative } = plan;
  if (tokenBalance < amountSent) {
    const text = `The account holds ${tokenBalance} of the token, and is to send ${amountSent}`;
    throw new BridgeError("insufficient_balance", text);
  }
  if (bridgeFee > bridgeMaxFee) {
    const text = `LayerZero's fee of ${bridgeFee} is above bridgeMaxFee, ${bridgeMaxFee}`;
    throw new BridgeError("bridge_fee_above_maximum", text);
  }
  const total = fee + bridgeFee;
  if (maxTotalFee !== undefined && feeSpent + total > maxTotalFee) {
    const text = `Gas and LayerZero's fee, ${feeSpent + total} together, are above maxTotalFee, ${maxTotalFee}`;
    throw new BridgeError("total_fee_above_maximum", text);
  }
  if (nativeBalance < total + amountInNative) {
    const besides = amountInNative > 0n ? ` besides the ${amountInNative} that are to be sent` : "";
    const text = `The account has ${nativeBalance} of the native coin, and may need ${total} for gas and LayerZero's fee${besides}`;
    throw new BridgeError("insufficient_native_balance", text);
  }
}
