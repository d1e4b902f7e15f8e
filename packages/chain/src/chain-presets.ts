import type { Address } from "viem";

/** How a chain takes its fees. */
export type FeeModel =
  /** EIP-1559: base fee and a tip. */
  | "eip1559"
  /** EIP-1559 transactions whose tip has no effect and should be 0. */
  | "eip1559-without-tip"
  /** Not known: EIP-1559 if the latest block has `baseFeePerGas`, else a gas price. */
  | "detect";

/** What one has to know about a chain to work with it. */
export interface ChainPreset {
  chainId: number;
  name: string;
  /** What gas is paid in. `decimals` are those of the native balance, not of a token of that name. */
  nativeCurrency: { name: string; symbol: string; decimals: number };
  /** Usual time between blocks; undefined where blocks come on demand, or it is not known. */
  blockTimeMs: number | undefined;
  /** How often to look for a new block. */
  pollIntervalMs: number;
  finality: {
    /** Whether nodes are known to answer the `finalized` block tag meaningfully. */
    finalizedTag: boolean;
    /** Blocks on top of a block until it is taken as final, where the tag is not used. */
    depth: number;
  };
  /** Undefined: not known to be deployed; look at `eth_getCode` of `MULTICALL3_ADDRESS`. */
  multicall3: Address | undefined;
  feeModel: FeeModel;
  /**
   * The most that a unit of gas is worth, tip included, in the native currency's smallest unit: far
   * above what is usual, and a bound on what a node that lies about fees can have spent.
   */
  maxFeePerGas: bigint;
}

const gwei = 10n ** 9n;

/** Where Multicall3 is on every chain that has it by the usual pre-signed deployment. */
export const multicall3Address: Address = "0xcA11bde05977b3631167028862bE2a173976CA11";

/**
 * Plasma mainnet. Chain id, currency, block time and Multicall3 as in viem's chain list. Blocks are
 * committed by a BFT consensus (PlasmaBFT) and executed by Reth. Nothing public promises the
 * `finalized` tag, so it is not relied upon; 10 blocks is the depth that Hyperlane's registry uses.
 * Plasma's documentation says that most transactions cost less than a cent: with 100 gwei, a payment
 * of 100,000 gas costs 0.01 XPL at most.
 */
const plasma: ChainPreset = {
  chainId: 9745,
  name: "Plasma",
  nativeCurrency: { name: "Plasma", symbol: "XPL", decimals: 18 },
  blockTimeMs: 1_000,
  pollIntervalMs: 500,
  finality: { finalizedTag: false, depth: 10 },
  multicall3: multicall3Address,
  feeModel: "eip1559",
  maxFeePerGas: 100n * gwei,
};

/**
 * Stable mainnet. Chain id, currency, block time and Multicall3 as in viem's chain list: gas is paid
 * in USDT0 with 18 decimals, while the USDT0 token contract has 6. Stable's documentation states
 * that a block is final once it is produced, and that a priority fee is ignored and should be 0. The
 * `finalized` tag is not promised; 5 blocks is the depth that Hyperlane's registry uses. With 100 gwei
 * a payment of 100,000 gas costs a cent at most.
 */
const stable: ChainPreset = {
  chainId: 988,
  name: "Stable",
  nativeCurrency: { name: "USDT0", symbol: "USDT0", decimals: 18 },
  blockTimeMs: 700,
  pollIntervalMs: 350,
  finality: { finalizedTag: false, depth: 5 },
  multicall3: multicall3Address,
  feeModel: "eip1559-without-tip",
  maxFeePerGas: 100n * gwei,
};

/**
 * A local anvil under its own chain id. It mines on demand, and lacks Multicall3 until somebody puts
 * it there. A devnet that goes by another chain's id gets that chain's preset.
 */
const anvil: ChainPreset = {
  chainId: 31337,
  name: "Anvil",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  blockTimeMs: undefined,
  pollIntervalMs: 100,
  finality: { finalizedTag: true, depth: 1 },
  multicall3: undefined,
  feeModel: "eip1559",
  maxFeePerGas: 500n * gwei,
};

export const chainPresets = { plasma, stable, anvil } as const;

/** The preset of a chain; for a chain without one, careful assumptions that fit any EVM chain. */
export function getChainPreset(chainId: number): ChainPreset {
  const known = Object.values(chainPresets).find((preset) => preset.chainId === chainId);
  return (
    known ?? {
      chainId,
      name: `Chain ${chainId}`,
      nativeCurrency: { name: "Native currency", symbol: "native", decimals: 18 },
      blockTimeMs: undefined,
      pollIntervalMs: 1_000,
      finality: { finalizedTag: false, depth: 64 },
      multicall3: undefined,
      feeModel: "detect",
      maxFeePerGas: 500n * gwei,
    }
  );
}
