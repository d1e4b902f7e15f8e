import { RpcResponseError } from "@coinslot/chain";
import type { ChainContext } from "./chain-context.ts";
import { toQuantity } from "./rpc/get-logs.ts";
import type { KnownToken } from "./store/known-token.ts";

/**
 * Records for each token whether an address can have had a balance before its start block. None can
 * if there was no block before, or no code at the token's address in it. Where no node keeps states
 * that old, it is open. Then balances before the start are asked for one by one, as if
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

/** Each endpoint is asked: one that denies the code would make balances wrong. */
async function hadNoCodeBefore(
  { pool }: ChainContext,
  { address, startBlock }: KnownToken,
  signal: AbortSignal,
): Promise<boolean> {
  if (startBlock === 0) return true;
  const call = { method: "eth_getCode", params: [address, toQuantity(startBlock - 1)] };
  const answers = await Promise.allSettled(
    pool.endpoints.map((endpoint) => endpoint.request(call, { signal })),
  );
  const found = answers.filter((each) => each.status === "fulfilled");
  if (found.length > 0) return found.every(({ value }) => value === "0x");
  const failed = answers.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  const fault = failed.find((error) => !(error instanceof RpcResponseError));
  if (fault !== undefined) throw fault;
  return false;
}
