import { type ChainFacts, findKnownChain, networkOf } from "@coinslot/protocol";

/** Facts and defaults of a chain, by its id. */
export interface ChainPreset extends ChainFacts {
  chainId: number;
}

const gwei = 10n ** 9n;

/**
 * A local anvil under its own chain id. It mines on demand, and has no Multicall3 at first. A
 * devnet that goes by another chain's id gets that chain's preset.
 */
const anvil: ChainFacts = {
  name: "Anvil",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  blockTimeMs: undefined,
  pollIntervalMs: 100,
  finality: { finalizedTag: true, depth: 1 },
  multicall3: undefined,
  feeModel: "eip1559",
  maxFeePerGas: 500n * gwei,
  minimumRelayerBalance: 10n ** 15n,
};

/** The preset of a chain; for an unknown one, conservative assumptions that fit any EVM chain. */
export function getChainPreset(chainId: number): ChainPreset {
  const known = chainId === 31337 ? anvil : findKnownChain(networkOf(chainId));
  return { ...(known ?? unknownChain(chainId)), chainId };
}

function unknownChain(chainId: number): ChainFacts {
  return {
    name: `Chain ${chainId}`,
    nativeCurrency: { name: "Native currency", symbol: "native", decimals: 18 },
    blockTimeMs: undefined,
    pollIntervalMs: 1_000,
    finality: { finalizedTag: false, depth: 64 },
    multicall3: undefined,
    feeModel: "detect",
    maxFeePerGas: 500n * gwei,
    minimumRelayerBalance: 10n ** 15n,
  };
}
