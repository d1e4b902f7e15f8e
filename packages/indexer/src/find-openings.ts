import type { ChainContext } from "./chain-context.ts";
import { toQuantity } from "./rpc/get-logs.ts";

/**
 * Records for each token whether an address can have had a balance before its start block. None can
 * if there was no block before, or no code at the token's address in it. Each endpoint is asked,
 * and two have to answer where there are two: one that denies the code would make balances wrong.
 * Else it is open, as where no other node keeps states that old. Then balances before the start are
 * asked for one by one, as if there were any.
 */
export async function findOpenings(
  { tokens, pool, lease }: ChainContext,
  signal: AbortSignal,
): Promise<void> {
  const later = tokens.filter(({ startBlock }) => startBlock > 0);
  const calls = later.map(({ address, startBlock }) => ({
    method: "eth_getCode",
    params: [address, toQuantity(startBlock - 1)],
  }));
  const answers = await Promise.allSettled(
    pool.endpoints.map((endpoint) => endpoint.requestMany(calls, { signal })),
  );
  const found = answers.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = answers.find((each) => each.status === "rejected");
  if (found.length === 0 && failed !== undefined) throw failed.reason;
  await lease.write(async (transaction) => {
    for (const token of tokens)
      await transaction
        .updateTable("indexer_tokens")
        .set({ opens_at_zero: token.startBlock === 0 || hadNoCode(later.indexOf(token)) ? 1 : 0 })
        .where("id", "=", token.id)
        .execute();
  });

  function hadNoCode(index: number): boolean {
    const codes = found.flatMap((outcomes) => {
      const outcome = outcomes[index];
      return outcome?.ok === true ? [outcome.result] : [];
    });
    return (
      codes.length >= Math.min(2, pool.endpoints.length) && codes.every((code) => code === "0x")
    );
  }
}
