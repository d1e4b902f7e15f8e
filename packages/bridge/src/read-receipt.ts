import {
  type Hash,
  type PublicClient,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
} from "viem";
import { askChain } from "./ask-chain.ts";

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
    return await client.getTransactionReceipt({ hash });
  } catch (error) {
    if (error instanceof TransactionReceiptNotFoundError) return undefined;
    return askChain(`the receipt of ${hash}`, Promise.reject(error));
  }
}
