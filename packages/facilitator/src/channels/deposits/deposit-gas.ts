import type { Hex } from "@coinslot/protocol";
import type { OpenDeposit } from "../../ledger/channels/channel-deposits.ts";
import { gasLimitForCode, gasLimitOf } from "../../settle/relay/gas.ts";
import type { EscrowContext } from "../channels-context.ts";
import type { readCarrier } from "./deposit-evidence.ts";

/** 149,000 measured of a plain token, with its calldata; one behind a proxy takes more. */
export const depositGas = 220_000n;

/** The gas limit of a deposit's transaction, which its trial is granted, too. */
export function depositGasLimit(
  { settlement: { network } }: EscrowContext,
  { data, payerHasCode }: { data: Hex; payerHasCode: boolean },
): bigint {
  if (payerHasCode) return gasLimitForCode(data, depositGas + network.callGasCap);
  return gasLimitOf(data, depositGas);
}

/**
 * Returns whether a transaction of ours has used more gas than the deposit of a key needs, or may
 * have. It may have failed, and its payer have had the deposit executed behind it.
 */
export function usedMuchGas(
  { data, payerHasCode }: OpenDeposit,
  { receipt, fault }: Awaited<ReturnType<typeof readCarrier>>,
): boolean {
  if (!payerHasCode || data === undefined) return false;
  return fault !== undefined || (receipt?.gasUsed ?? 0n) > gasLimitForCode(data, depositGas);
}
