import { runFacilitatorTrial } from "@coinslot/hosting";
import { loadDevnet } from "../devnet/load-devnet.ts";
import type { Terminal } from "../terminal.ts";

const tokensForBuyer = 1_000_000_000n;

/**
 * Runs the hosted facilitator on a local chain of its own. Both end together, and leave nothing.
 */
export async function tryOnDevnet({ env, signal, out }: Terminal): Promise<void> {
  const { startDevnet } = await loadDevnet();
  const chain = await startDevnet();
  try {
    await chain.mint({ to: chain.accounts.buyer.address, amount: tokensForBuyer });
    await runFacilitatorTrial({ chain, env, signal, print: out });
  } finally {
    await chain.stop();
  }
}
