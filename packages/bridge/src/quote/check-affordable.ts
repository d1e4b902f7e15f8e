import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import type { TransferPlan } from "./plan-transfer.ts";

/**
 * Compares a plan with the account's balances, and with the maximum of LayerZero's fee.
 *
 * @throws BridgeError `insufficient_balance`, `bridge_fee_above_maximum`,
 * `insufficient_native_balance`
 */
export function checkAffordable(
  { bridgeMaxFee }: Pick<BridgeContext, "bridgeMaxFee">,
  plan: TransferPlan,
): void {
  const { fee, bridgeFee, amountSent, tokenBalance, nativeBalance, amountInNative } = plan;
  if (tokenBalance < amountSent) {
    const text = `The account holds ${tokenBalance} of the token, and the transfer needs ${amountSent}`;
    throw new BridgeError("insufficient_balance", text);
  }
  if (bridgeFee > bridgeMaxFee) {
    const text = `LayerZero's fee of ${bridgeFee} is above bridgeMaxFee, ${bridgeMaxFee}`;
    throw new BridgeError("bridge_fee_above_maximum", text);
  }
  const total = fee + bridgeFee;
  if (nativeBalance < total + amountInNative) {
    const besides = amountInNative > 0n ? ` besides the ${amountInNative} to send` : "";
    const text = `The account has ${nativeBalance} of the native coin, and may need ${total} for gas and LayerZero's fee${besides}`;
    throw new BridgeError("insufficient_native_balance", text);
  }
}
