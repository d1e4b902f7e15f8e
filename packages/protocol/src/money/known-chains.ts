import { type Address, isSameAddress } from "./address.ts";
import type { Network } from "./network.ts";

/** A payment token, and the EIP-712 domain of its signed transfers. */
export interface Asset {
  address: Address;
  /** EIP-712 domain name of the token contract. */
  name: string;
  /** EIP-712 domain version of the token contract. */
  version: string;
  decimals: number;
  /** Ticker for display, such as `USDC`. Default: the domain name. */
  symbol?: string | undefined;
}

/** Transaction type and tip of a chain. */
export type FeeModel =
  /** EIP-1559: base fee and a tip. */
  | "eip1559"
  /** EIP-1559 transactions whose tip has no effect and should be 0. */
  | "eip1559-without-tip"
  /** Unknown: EIP-1559 if the latest block has `baseFeePerGas`, else a gas price. */
  | "detect";

/** Facts and defaults of a chain. Fees and balances are in the smallest unit of its native coin. */
export interface ChainFacts {
  name: string;
  /**
   * Coin that pays for gas. `decimals` are those of the native balance, not of a token of that
   * name.
   */
  nativeCurrency: { name: string; symbol: string; decimals: number };
  /** Usual time between blocks; undefined where blocks come on demand, or it is unknown. */
  blockTimeMs: number | undefined;
  /** Interval of the poll for a new block. */
  pollIntervalMs: number;
  finality: {
    /** True if nodes are known to answer the `finalized` block tag meaningfully. */
    finalizedTag: boolean;
    /** Blocks on top of a block until it counts as final, where the tag is not used. */
    depth: number;
  };
  /** Undefined: not known to be deployed; `eth_getCode` of `multicall3Address` decides. */
  multicall3: Address | undefined;
  feeModel: FeeModel;
  /**
   * Cap on the price of a unit of gas, tip included. It is far above the usual price, and bounds
   * the loss through a node that lies about fees.
   */
  maxFeePerGas: bigint;
  /**
   * Relayer balance below which new payments are refused: gas for a few hundred usual transfers.
   */
  minimumRelayerBalance: bigint;
}

/** A known chain, with its stablecoins. */
export interface KnownChain extends ChainFacts {
  network: Network;
  /** True if its tokens are worth nothing. */
  isTestnet?: true;
  /** Endpoint that the chain offers to the public, without an API key. */
  publicRpcUrl: string;
  /** Origin of a block explorer, which shows a transaction under `/tx/`. */
  explorerUrl: string;
  /** EIP-3009 tokens worth a dollar; a price in dollars means the first. */
  tokens: readonly [Asset, ...Asset[]];
}

/** Address of Multicall3 on every chain that has it by its usual pre-signed deployment. */
export const multicall3Address: Address = "0xcA11bde05977b3631167028862bE2a173976CA11";

/** Plasma, a chain made for stablecoin transfers. */
export const plasma = "eip155:9745" as const satisfies Network;

/** Stable, a chain made for stablecoin transfers. */
export const stable = "eip155:988" as const satisfies Network;

/** USDT0 on Plasma. */
export const plasmaUsdt0: Asset = usdt0("0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb");

/** USDT0 on Stable, where it is the native coin as well. */
export const stableUsdt0: Asset = usdt0("0x779Ded0c9e1022225f8E0630b35a9b54bE713736");

const gwei = 10n ** 9n;
const ether = { name: "Ether", symbol: "ETH", decimals: 18 };

/** Rollups of Ethereum with cheap gas: usually a hundredth of a gwei, some gwei in a rush. */
const rollup = {
  nativeCurrency: ether,
  multicall3: multicall3Address,
  feeModel: "eip1559",
  maxFeePerGas: 10n * gwei,
  minimumRelayerBalance: 2n * 10n ** 14n,
} as const;

/**
 * The known chains; another EVM chain works by configuration. One entry holds all data that the
 * packages need.
 *
 * Sources: viem's chain list (name, currency, block time, Multicall3, public endpoint, explorer).
 * Hyperlane's registry (depth of Plasma and Stable; elsewhere at least 64). The tables of
 * `@x402/evm` and Circle's list of contracts (USDC and its domain). The public deployments of
 * USDT0. A facilitator compares each domain with its chain at the start.
 */
export const knownChains: readonly KnownChain[] = [
  {
    // Blocks are committed by a BFT consensus; nothing public promises the `finalized` tag.
    network: plasma,
    name: "Plasma",
    nativeCurrency: { name: "Plasma", symbol: "XPL", decimals: 18 },
    blockTimeMs: 1_000,
    pollIntervalMs: 500,
    finality: { finalizedTag: false, depth: 10 },
    multicall3: multicall3Address,
    feeModel: "eip1559",
    maxFeePerGas: 100n * gwei,
    minimumRelayerBalance: 10n ** 15n,
    publicRpcUrl: "https://rpc.plasma.to",
    explorerUrl: "https://plasmascan.to",
    tokens: [plasmaUsdt0],
  },
  {
    // Gas is paid in USDT0 with 18 decimals, while the token contract has 6. By Stable's
    // documentation, a priority fee is ignored and should be 0. A block is final once it is
    // produced.
    network: stable,
    name: "Stable",
    nativeCurrency: { name: "USDT0", symbol: "USDT0", decimals: 18 },
    blockTimeMs: 700,
    pollIntervalMs: 350,
    finality: { finalizedTag: false, depth: 5 },
    multicall3: multicall3Address,
    feeModel: "eip1559-without-tip",
    maxFeePerGas: 100n * gwei,
    minimumRelayerBalance: 10n ** 15n,
    publicRpcUrl: "https://rpc.stable.xyz",
    explorerUrl: "https://stablescan.xyz",
    tokens: [stableUsdt0],
  },
  {
    ...rollup,
    network: "eip155:8453",
    name: "Base",
    blockTimeMs: 2_000,
    pollIntervalMs: 1_000,
    finality: { finalizedTag: false, depth: 64 },
    publicRpcUrl: "https://mainnet.base.org",
    explorerUrl: "https://basescan.org",
    tokens: [usdc("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")],
  },
  {
    ...rollup,
    network: "eip155:42161",
    name: "Arbitrum One",
    // Blocks come up to four times a second; a poll for each would cost more than it gains.
    blockTimeMs: 250,
    pollIntervalMs: 500,
    finality: { finalizedTag: false, depth: 64 },
    publicRpcUrl: "https://arb1.arbitrum.io/rpc",
    explorerUrl: "https://arbiscan.io",
    tokens: [usdc("0xaf88d065e77c8cC2239327C5EDb3A432268e5831")],
  },
  {
    network: "eip155:137",
    name: "Polygon",
    nativeCurrency: { name: "POL", symbol: "POL", decimals: 18 },
    blockTimeMs: 2_000,
    pollIntervalMs: 1_000,
    // Two checkpoints; a registry that other bridges use waits for the `finalized` tag instead.
    finality: { finalizedTag: true, depth: 256 },
    multicall3: multicall3Address,
    feeModel: "eip1559",
    maxFeePerGas: 2_000n * gwei,
    minimumRelayerBalance: 10n ** 17n,
    publicRpcUrl: "https://polygon-rpc.com",
    explorerUrl: "https://polygonscan.com",
    tokens: [usdc("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359")],
  },
  {
    ...rollup,
    network: "eip155:10",
    name: "OP Mainnet",
    blockTimeMs: 2_000,
    pollIntervalMs: 1_000,
    finality: { finalizedTag: false, depth: 64 },
    publicRpcUrl: "https://mainnet.optimism.io",
    explorerUrl: "https://optimistic.etherscan.io",
    tokens: [usdc("0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85")],
  },
  {
    network: "eip155:43114",
    name: "Avalanche",
    nativeCurrency: { name: "Avalanche", symbol: "AVAX", decimals: 18 },
    blockTimeMs: 1_700,
    pollIntervalMs: 850,
    finality: { finalizedTag: false, depth: 64 },
    multicall3: multicall3Address,
    feeModel: "eip1559",
    maxFeePerGas: 200n * gwei,
    minimumRelayerBalance: 10n ** 16n,
    publicRpcUrl: "https://api.avax.network/ext/bc/C/rpc",
    explorerUrl: "https://snowtrace.io",
    tokens: [usdc("0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E")],
  },
  {
    network: "eip155:1",
    name: "Ethereum",
    nativeCurrency: ether,
    blockTimeMs: 12_000,
    pollIntervalMs: 2_000,
    finality: { finalizedTag: true, depth: 64 },
    multicall3: multicall3Address,
    feeModel: "eip1559",
    maxFeePerGas: 500n * gwei,
    minimumRelayerBalance: 10n ** 16n,
    publicRpcUrl: "https://eth.merkle.io",
    explorerUrl: "https://etherscan.io",
    tokens: [usdc("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48")],
  },
  {
    ...rollup,
    network: "eip155:84532",
    name: "Base Sepolia",
    isTestnet: true,
    nativeCurrency: { name: "Sepolia Ether", symbol: "ETH", decimals: 18 },
    blockTimeMs: 2_000,
    pollIntervalMs: 1_000,
    finality: { finalizedTag: false, depth: 64 },
    publicRpcUrl: "https://sepolia.base.org",
    explorerUrl: "https://sepolia.basescan.org",
    tokens: [usdc("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC")],
  },
];

const chainOf = new Map(knownChains.map((chain) => [chain.network, chain]));

/** Facts and tokens of a network, if it is a known one. */
export function findKnownChain(network: Network): KnownChain | undefined {
  return chainOf.get(network);
}

/** Default token of prices such as `"$0.001"` on a network, where one is known. */
export function knownAsset(network: Network): Asset | undefined {
  return chainOf.get(network)?.tokens[0];
}

/** Decimals and domain of a known token by its address: no node has to be trusted for them. */
export function findKnownToken(network: Network, address: Address): Asset | undefined {
  return chainOf.get(network)?.tokens.find((token) => isSameAddress(token.address, address));
}

/** Ticker of a token for people. */
export function symbolOf({ symbol, name }: Pick<Asset, "symbol" | "name">): string {
  return symbol ?? name;
}

function usdt0(address: Address): Asset {
  return { address, name: "USDT0", version: "1", decimals: 6, symbol: "USDT0" };
}

function usdc(address: Address, name = "USD Coin"): Asset {
  return { address, name, version: "2", decimals: 6, symbol: "USDC" };
}
