import { RpcResponseError } from "@coinslot/chain";
import type { ChainContext } from "./chain-context.ts";
import { toQuantity } from "./rpc/get-logs.ts";
import type { KnownToken } from "./store/known-token.ts";

/**
 * Notes of each token whether anybody can have had a balance before its start block. Nobody can if there was no block
 * before, or no code at its address in it. A node that does not keep states that old cannot tell: then balances
 * before the start are asked for one by one, as if there were any.
 */
export async function findOpenings(context: ChainContext, signal: AbortSignal): Promise<void> {
  const { tokens, lease } = context;
  for (const token of tokens) {
    const opensAtZero = await hadNoCodeBefore(context, token, signal);
    await lease.write((transaction) =>
      transaction
        .updateTable("indexer_tokens")
        .set({ opens_at_zero: opensAtZero ? 1 : 0 })
        .where("id", "=", token.id)
        .execute(),
    );
  }
}

async function hadNoCodeBefore(
  { pool }: ChainContext,
  { address, startBlock }: KnownToken,
  signal: AbortSignal,
): Promise<boolean> {
  if (startBlock === 0) return true;
  const call = { method: "eth_getCode", params: [address, toQuantity(startBlock - 1)] };
  try {
    return (await pool.request(call, { signal })) === "0x";
  } catch (error) {
    if (error instanceof RpcResponseError) return false;
    throw error;
  }
}
