import {
  type Hash,
  type PublicClient,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
} from "viem";
import { BridgeError } from "../bridge-error.ts";
import { askChain } from "../chains/ask-chain.ts";

/**
 * The receipt of a transaction; `undefined` while it is in no block.
 *
 * @throws BridgeError `rpc_unavailable`
 */
export async function readReceipt(
  client: PublicClient,
  hash: Hash,
): Promise<TransactionReceipt | undefined> {
  try {
    const receipt = await client.getTransactionReceipt({ hash });
    if (String(receipt.transactionHash).toLowerCase() === hash.toLowerCase()) return receipt;
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return undefined;
    return askChain(`the receipt of ${hash}`, Promise.reject(error));
  }
  const text = `The RPC endpoint returned the receipt of another transaction than ${hash}`;
  throw new BridgeError("rpc_unavailable", text);
}
