import { RpcResponseError } from "@coinslot/chain";
import type { ChainContext } from "./chain-context.ts";
import { toQuantity } from "./rpc/get-logs.ts";
import type { KnownToken } from "./store/known-token.ts";

/**
 * Records for each token whether an address can have had a balance before its start block. None can
 * if there was no block before, or no code at the token's address in it. A node that does not keep
 * states that old leaves it open. Then balances before the start are asked for one by one, as if
 * there were any.
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
    const code = await pool.onEndpoint((endpoint) => endpoint.request(call, { signal }), {
      signal,
    });
    return code === "0x";
  } catch (error) {
    if (error instanceof RpcResponseError) return false;
    throw error;
  }
}
