import { createChainClient, createRpcPool } from "@coinslot/chain";
import type { PaymentTerms } from "@coinslot/client";
import { eip3009Abi } from "@coinslot/protocol";
import { findNetworks } from "../networks.ts";
import type { Terminal } from "../terminal.ts";

/** What a block says that is so much older than the newest one is not replaced any more. */
const settledSeconds = 60n;

/**
 * Whether nobody took a payment, and nobody can any more: by the chain's own time its time is over, and its
 * authorization is unused. `false` also where the chain cannot be asked: then nothing is known.
 */
export async function isNeverTaken(env: Terminal["env"], terms: PaymentTerms): Promise<boolean> {
  const { network, asset: address, payer, nonce, validBefore } = terms;
  const configured = findNetworks(env, () => undefined).find((each) => each.network === network);
  if (configured === undefined) return false;
  const { chainId, rpcUrls } = configured;
  try {
    const pool = createRpcPool({ chainId, rpcUrls });
    try {
      const client = createChainClient(pool);
      const { number: blockNumber, timestamp } = await client.getBlock();
      if (timestamp < BigInt(validBefore) + settledSeconds) return false;
      const isUsed = await client.readContract({
        address,
        abi: eip3009Abi,
        functionName: "authorizationState",
        args: [payer, nonce],
        blockNumber,
      });
      return !isUsed;
    } finally {
      pool.close();
    }
  } catch {
    return false;
  }
}
