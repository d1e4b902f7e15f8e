import { sleep } from "@coinslot/chain";
import { zeroAddress } from "viem";
import type { ChainContext } from "./chain-context.ts";
import type { IndexerConfiguration } from "./configuration.ts";
import { findAnchor } from "./query/find-anchor.ts";
import { readKnownBalance } from "./query/known-balance.ts";
import { readTokenBalance } from "./rpc/read-token-balance.ts";
import { hexOfBytes } from "./store/bytes.ts";
import type { KnownToken } from "./store/known-token.ts";
import { wrapUint256 } from "./store/wrap-uint256.ts";

const confirmAfterMs = 1_000;

/**
 * A balance that differs from the token's own answer: it changed without a `Transfer`, or the index
 * is wrong.
 */
export interface BalanceDifference {
  chain: string;
  token: string;
  address: string;
  block: number;
  indexed: bigint;
  onChain: bigint;
}

/** Compares balances with the chain at intervals, and reports differences; it changes nothing. */
export async function spotCheck(
  context: ChainContext,
  options: NonNullable<IndexerConfiguration["spotCheck"]> & {
    signal: AbortSignal;
    onDifference: (difference: BalanceDifference) => void;
  },
): Promise<void> {
  const { everyMs, signal, onDifference } = options;
  const { clock, logger, chain } = context;
  while (!signal.aborted) {
    await sleep(clock, everyMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    for (const token of context.tokens)
      try {
        for (const difference of await findDifferences(context, token, options)) {
          logger.error(difference, "A balance differs from the token's");
          onDifference(difference);
        }
      } catch (error) {
        if (signal.aborted) return;
        // No failure, neither a node's answer nor a listener's error, may end the work that is only
        // watched.
        const facts = { chain: chain.name, token: token.token, error };
        logger.warn(facts, "Balances could not be compared");
      }
  }
}

/** Checks the addresses of a token that moved last. */
async function findDifferences(
  { clock, database, pool, chain }: ChainContext,
  token: KnownToken,
  {
    everyMs,
    addresses: count,
    signal,
  }: { everyMs: number; addresses: number; signal: AbortSignal },
): Promise<BalanceDifference[]> {
  const differences: BalanceDifference[] = [];
  const recent = await database.kysely
    .selectFrom("indexer_transfers")
    .select(["from_address", "to_address"])
    .where("token_id", "=", token.id)
    .orderBy("position", "desc")
    .limit(count)
    .execute();
  const moved = recent.flatMap((row) => [row.to_address, row.from_address].map(hexOfBytes));
  // The zero address, which mints and burns name, has no sum.
  const addresses = new Set(moved.filter((address) => address !== zeroAddress).slice(0, count));
  for (const address of addresses) {
    const { gain, opening, block } = await readKnownBalance(database, { token, address });
    // Without an opening there is no comparison: it would be taken from the same answer.
    if (opening === undefined || block === undefined) continue;
    const indexed = wrapUint256(gain + opening);
    const anchor = await findAnchor(database, token.chainId, block);
    if (anchor === undefined) continue;
    const ask = () => readTokenBalance(pool, { token: token.address, address, block, anchor });
    if (indexed === (await ask())) continue;
    // A node that is adding a block may answer from the state after it. A difference is reported
    // only if a later answer confirms it.
    await sleep(clock, Math.min(everyMs, confirmAfterMs), signal);
    const onChain = await ask();
    if (indexed === onChain) continue;
    const { number } = block;
    differences.push({
      chain: chain.name,
      token: token.token,
      address,
      block: number,
      indexed,
      onChain,
    });
  }
  return differences;
}
