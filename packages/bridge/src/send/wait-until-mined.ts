import { sleep } from "@coinslot/chain";
import type { Hash, PublicClient, TransactionReceipt } from "viem";
import type { BridgeContext } from "../bridge-options.ts";
import { isClosed } from "../chains/ask-chain.ts";
import { readReceipt } from "../track/read-receipt.ts";

/**
 * Waits until a transaction that was sent is in a block; it may have reverted, which its receipt
 * says. `undefined`: not in time, or not before the bridge was closed, and it may be mined yet.
 *
 * @param options.signal when aborted, it rejects with its reason
 */
export async function waitUntilMined(
  { clock, receiptTimeoutMs }: Pick<BridgeContext, "clock" | "receiptTimeoutMs">,
  options: { client: PublicClient; hash: Hash; signal: AbortSignal | undefined },
): Promise<TransactionReceipt | undefined> {
  const { client, hash, signal } = options;
  const deadline = clock.now() + receiptTimeoutMs;
  while (true) {
    signal?.throwIfAborted();
    // Once it is sent, an endpoint that fails is no reason to lose sight of it.
    const receipt = await readReceipt(client, hash).catch((error: unknown) =>
      isClosed(error) ? "closed" : undefined,
    );
    if (receipt === "closed") return undefined;
    if (receipt !== undefined) return receipt;
    if (clock.now() >= deadline) return undefined;
    await sleep(clock, client.pollingInterval, signal);
  }
}
