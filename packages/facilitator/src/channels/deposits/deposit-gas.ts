import type { Hex } from "@coinslot/protocol";
import type { OpenDeposit } from "../../ledger/channels/channel-deposits.ts";
import { gasLimitForCode, gasLimitOf } from "../../settle/relay/gas.ts";
import type { EscrowContext } from "../channels-context.ts";

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

/** Returns whether a transaction of ours has used more gas than the deposit of a key needs. */
export function usedMuchGas(
  { data, hash, payerHasCode }: OpenDeposit,
  execution: { hash: Hex; gasUsed: bigint },
): boolean {
  if (!payerHasCode || data === undefined || execution.hash !== hash) return false;
  return execution.gasUsed > gasLimitForCode(data, depositGas);
}
