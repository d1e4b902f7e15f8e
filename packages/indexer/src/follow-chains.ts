import type { ChainContext } from "./chain-context.ts";
import type { IndexerConfiguration } from "./configuration.ts";
import { followChain } from "./follow-chain.ts";
import { type BalanceDifference, spotCheck } from "./spot-check.ts";
import { verifyChain } from "./verify/verify-chain.ts";

/** Follows each chain, verifies what is final, and compares balances with it where that is asked for, until the signal is aborted. */
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
  // A chain that has stopped leaves the writer lease to the others, and to nobody else.
  if (!signal.aborted) await aborted(signal);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
