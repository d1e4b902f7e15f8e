import type { Hash, PublicClient } from "viem";
import { BridgeError } from "../bridge-error.ts";

/** One RPC endpoint of a chain. */
export interface ChainNode {
  /** Operator of its URL (`operatorOf`); empty for a client of the caller. */
  operator: string;
  client: PublicClient;
}

/** Returns whether nodes are of two hosts at least, so that one can contradict the other. */
function hasWitnesses(nodes: readonly ChainNode[]): boolean {
  return new Set(nodes.map(({ operator }) => operator)).size > 1;
}

/**
 * Returns whether nodes of two hosts confirm a claim. A node that fails is no witness. One host is
 * believed only where no other is named.
 *
 * @param confirms asks one node
 */
export async function isWitnessed(
  nodes: readonly ChainNode[],
  confirms: (client: PublicClient) => Promise<boolean>,
): Promise<boolean> {
  if (!hasWitnesses(nodes)) return true;
  const witnesses = await Promise.all(
    nodes.map(async ({ operator, client }) => {
      const isConfirmed = await confirms(client).catch(() => false);
      return isConfirmed ? [operator] : [];
    }),
  );
  return new Set(witnesses.flat()).size > 1;
}

/**
 * Requires two hosts for a claim that a transfer has ended. That end invites another transfer, so
 * one host never proves it. Without a time limit, the host may keep a transaction which it claims
 * to refuse, or deny an executed one.
 *
 * @param claim a sentence without its full stop
 * @throws BridgeError `outcome_unclear` where all nodes are of one host
 */
export function requireWitnesses(
  nodes: readonly ChainNode[],
  { claim, hash }: { claim: string; hash: Hash },
): void {
  if (hasWitnesses(nodes)) return;
  const text = `${claim}, by the RPC endpoints of one host only: tokens may have moved, or may still move. Track it with an endpoint of another host as well before sending again`;
  throw new BridgeError("outcome_unclear", text, { hash });
}
