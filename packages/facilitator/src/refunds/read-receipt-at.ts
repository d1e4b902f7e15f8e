import type { RpcRequester } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import { readReceipt, receiptCall, type TransactionReceipt } from "../evm/transaction-receipt.ts";

/**
 * The receipt that a node returns; `undefined` while no block of its chain holds the
 * transaction.
 *
 * @throws RpcError, ZodError where it returns an error, or other than this receipt
 */
export async function readReceiptAt(
  node: RpcRequester,
  hash: Hex,
): Promise<TransactionReceipt | undefined> {
  const [answer] = await node.requestMany([receiptCall(hash)]);
  const { receipt, fault } = readReceipt(hash, answer);
  if (fault !== undefined) throw fault;
  return receipt;
}
