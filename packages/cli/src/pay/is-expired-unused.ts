import {
  createChainClient,
  createRpcPool,
  getChainPreset,
  type RpcRequester,
} from "@coinslot/chain";
import type { PaymentTerms } from "@coinslot/client";
import { findNetworks, hasWitnesses } from "@coinslot/hosting/environment";
import { eip3009Abi } from "@coinslot/protocol";
import type { Terminal } from "../terminal.ts";

/** Clock skew between chains, and the depth for a payment of the last second. */
const marginSeconds = 60;

/**
 * Certainty that a payment was never taken, and cannot be any more.
 *
 * - `yes`: its time is over by our own clock and by the chain's. Its authorization is unused in a
 *   block that is deep enough. All nodes say so, of two hosts at least.
 * - `one node`: the same by the nodes of one host alone, which may lie without a time limit. A
 *   person may accept it.
 * - `unknown`: all else. It may have been taken, or may be.
 */
export type NeverTaken = "yes" | "one node" | "unknown";

/**
 * Reads from every node of the network. One that contradicts, or does not answer, makes it unknown.
 */
export async function isExpiredUnused(
  env: Terminal["env"],
  terms: PaymentTerms,
  { now }: { now: () => number },
): Promise<NeverTaken> {
  const { network, validBefore, channel } = terms;
  // A voucher has no end, and no nonce that a node knows.
  if (channel !== undefined) return "unknown";
  const overForSeconds = Math.floor(now() / 1000) - validBefore;
  const configured = findNetworks(env, () => undefined).find((each) => each.network === network);
  // No node can know it before.
  if (configured === undefined || overForSeconds < marginSeconds) return "unknown";
  const { chainId, rpcUrls } = configured;
  const pool = createRpcPool({ chainId, rpcUrls });
  try {
    const answers = await Promise.all(pool.endpoints.map((node) => isUnused(node, terms)));
    if (answers.length === 0 || !answers.every(Boolean)) return "unknown";
  } catch {
    return "unknown";
  } finally {
    pool.close();
  }
  return hasWitnesses(configured) ? "yes" : "one node";
}

/**
 * Resolves to whether a node reports an authorization as unused in a deep enough block after its
 * time.
 */
async function isUnused(node: RpcRequester, terms: PaymentTerms): Promise<boolean> {
  const { asset: address, payer, nonce, validBefore } = terms;
  const client = createChainClient(node);
  const [chainId, head] = await Promise.all([client.getChainId(), client.getBlockNumber()]);
  if (chainId !== node.chainId) return false;
  const depth = BigInt(getChainPreset(chainId).finality.depth);
  if (head < depth) return false;
  const blockNumber = head - depth;
  const { timestamp } = await client.getBlock({ blockNumber });
  if (timestamp < BigInt(validBefore)) return false;
  const read = { address, abi: eip3009Abi, functionName: "authorizationState" } as const;
  return !(await client.readContract({ ...read, args: [payer, nonce], blockNumber }));
}
