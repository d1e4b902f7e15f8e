import type { ChainContext } from "./chain-context.ts";
import type { IndexerConfiguration } from "./configuration.ts";
import { followChain } from "./follow-chain.ts";
import { type BalanceDifference, spotCheck } from "./spot-check.ts";
import { verifyChain } from "./verify/verify-chain.ts";

/**
 * Follows each chain and verifies its final blocks, until the signal is aborted. Compares balances
 * with the chain where that is configured.
 */
export async function followChains(
  contexts: readonly ChainContext[],
  options: {
    spotCheck: IndexerConfiguration["spotCheck"];
    onDifference: (difference: BalanceDifference) => void;
    signal: AbortSignal;
  },
): Promise<void> {
  const { onDifference, signal } = options;
  await Promise.all(
    contexts.flatMap((context) => {
      const work = [followChain(context, signal), verifyChain(context, signal)];
      if (options.spotCheck !== undefined)
        work.push(spotCheck(context, { ...options.spotCheck, signal, onDifference }));
      return work;
    }),
  );
  // A stopped chain leaves the writer lease to the other chains of this process, not to another
  // process.
  if (!signal.aborted) await aborted(signal);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
