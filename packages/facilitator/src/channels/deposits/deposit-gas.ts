import type { Hex } from "@coinslot/protocol";
import { readReceipt, receiptCall } from "../../evm/transaction-receipt.ts";
import type { OpenDeposit } from "../../ledger/channels/channel-deposits.ts";
import { findHashes } from "../../ledger/transactions/find-transactions.ts";
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

/**
 * Resolves to whether a transaction of ours has used more gas than the deposit of a key needs. It
 * may have failed, and its payer have had the deposit executed behind it.
 *
 * @throws RpcError, ZodError where a receipt cannot be read, DatabaseError
 */
export async function usedMuchGas(
  { context: { ledger }, settlement: { network } }: EscrowContext,
  { data, payerHasCode, transactionId }: OpenDeposit,
): Promise<boolean> {
  if (!payerHasCode || data === undefined || transactionId === undefined) return false;
  const hashes = await findHashes(ledger, transactionId);
  const outcomes = await network.rpc.requestMany(hashes.map(receiptCall));
  const usual = gasLimitForCode(data, depositGas);
  return hashes.some((hash, index) => {
    const { receipt, fault } = readReceipt(hash, outcomes[index]);
    if (fault !== undefined) throw fault;
    return receipt !== undefined && receipt.gasUsed > usual;
  });
}
