import { networkOf } from "@coinslot/protocol";
import { createPublicClient, http, TransactionReceiptNotFoundError } from "viem";
import type { OnChain } from "../cycles/cycle.ts";
import type { ReadChain } from "../cycles/observe-exchange.ts";

const hash = /^0x[0-9a-f]{64}$/i;

/**
 * Reads the transactions of receipts by the given nodes: status, gas and fee. An answer has
 * `timeoutMs` to its last byte.
 */
export function createChainReader(rpcUrls: readonly string[], timeoutMs = 5_000): ReadChain {
  // The limit of viem ends with the headers: a body that drips would never end.
  // A redirect could lead to a port of this machine.
  const fetchFn: typeof fetch = (input, init) =>
    fetch(input, { ...init, redirect: "error", signal: AbortSignal.timeout(timeoutMs) });
  const clients = rpcUrls.map((url) =>
    createPublicClient({ transport: http(url, { fetchFn, timeout: 0, retryCount: 1 }) }),
  );
  return async (transaction, network): Promise<OnChain> => {
    const startedAt = performance.now();
    const took = () => ({ transaction, tookMs: Math.round(performance.now() - startedAt) });
    if (!hash.test(transaction)) return { ...took(), status: "not found" };
    let isServed = false;
    for (const client of clients) {
      try {
        const served = networkOf(await client.getChainId());
        if (network !== undefined && served !== network) continue;
        isServed = true;
        const receipt = await client.getTransactionReceipt({ hash: `0x${transaction.slice(2)}` });
        const { status, gasUsed, effectiveGasPrice, blockNumber } = receipt;
        const fee = String(gasUsed * effectiveGasPrice);
        return { ...took(), status, gasUsed: String(gasUsed), fee, block: String(blockNumber) };
      } catch (error) {
        // The next node may know it.
        if (!(error instanceof TransactionReceiptNotFoundError)) continue;
      }
    }
    return { ...took(), status: isServed ? "not found" : "other chain" };
  };
}
