import type { Address } from "@coinslot/protocol";

const maxKept = 1_000;

/** The assets of one chain that had code in a trial. */
export interface DeployedAssets {
  /** Records whether an asset has code, by a node. Returns false where it had code before. */
  note(asset: Address, hasCode: boolean): boolean;
}

/**
 * Creates a memory of assets. A contract does not go away. So a node without the code of a known
 * one lacks the chain's state. The assets of an open facilitator are its callers' choice: the one
 * unseen for longest is forgotten.
 */
export function createDeployedAssets(): DeployedAssets {
  /** Insertion order is the order of their last trials. */
  const seen = new Set<Address>();
  return {
    note(asset, hasCode) {
      if (!hasCode) return !seen.has(asset);
      seen.delete(asset);
      const [oldest] = seen.size >= maxKept ? seen : [];
      if (oldest !== undefined) seen.delete(oldest);
      seen.add(asset);
      return true;
    },
  };
}
