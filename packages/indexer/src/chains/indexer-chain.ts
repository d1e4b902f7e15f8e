import type { ChainOptions } from "../configuration.ts";
import { usdtDecimals, usdtDeployments } from "./usdt-deployments.generated.ts";

/** A chain whose USDT contract is known. */
export type IndexerChainName = keyof typeof usdtDeployments;

export type IndexerChainOptions = Omit<ChainOptions, "name" | "chainId" | "tokens"> & {
  /** The first block to index of the chain's USDT. Default 0: everything. */
  startBlock?: number;
};

/** The names that `indexerChain` takes. */
export function indexerChainNames(): IndexerChainName[] {
  return Object.keys(usdtDeployments).filter(isIndexerChainName);
}

export function isIndexerChainName(name: string): name is IndexerChainName {
  return Object.hasOwn(usdtDeployments, name);
}

/** The options of a chain with its USDT (on Ethereum) or USDT0 (elsewhere), as token `usdt`. */
export function indexerChain(
  name: IndexerChainName,
  { startBlock = 0, ...options }: IndexerChainOptions,
): ChainOptions {
  const { chainId, address } = usdtDeployments[name];
  return {
    name,
    chainId,
    tokens: [{ name: "usdt", address, startBlock, decimals: usdtDecimals }],
    ...options,
  };
}

/**
 * A local devnet: blocks come on demand, and all is final 10 blocks deep. By default it has
 * Plasma's chain id and the place of its USDT0, as this project's devnet has them.
 */
export function devnetChain(
  options: Pick<ChainOptions, "rpcUrls"> & Partial<ChainOptions>,
): ChainOptions {
  const { chainId, address } = usdtDeployments.plasma;
  return {
    name: "devnet",
    chainId,
    tokens: [{ name: "usdt", address, startBlock: 0, decimals: usdtDecimals }],
    finality: { depth: 10 },
    pollIntervalMs: 100,
    staleAfterMs: Number.MAX_SAFE_INTEGER,
    ...options,
  };
}
