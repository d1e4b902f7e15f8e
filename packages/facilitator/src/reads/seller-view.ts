import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { chainIdOf, type Network, toLowerHex } from "@coinslot/protocol";
import { databaseFileOf } from "@coinslot/storage";
import type { Chain } from "../open-chain.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import type { SettlementMetrics } from "../settle/metrics.ts";
import { hostOf } from "./host-of.ts";

/** An RPC endpoint, as this process has found it. Its URL is a secret. */
export interface EndpointView {
  /** As the log names it: `endpoint 1 of 2`. */
  endpoint: number;
  /** The last two labels of its host. */
  host: string;
  state: string;
  head: number | undefined;
  isLagging: boolean;
  latencyMs: number | undefined;
  lastFailure: string | undefined;
  /** HTTP requests since the start, and those that failed. */
  requests: number;
  failures: number;
}

/** A chain, as this process follows it. */
export interface ChainView {
  network: Network;
  chainId: number;
  head: { number: number; timestamp: number } | undefined;
  sinceReadMs: number | undefined;
  isReachable: boolean;
  isStalled: boolean;
  endpoints: EndpointView[];
  /** Payments whose block has left the chain, since the start. */
  reorganised: number;
}

/** A relayer whose key is here. */
export interface RelayerView {
  network: Network;
  relayer: string;
  /** In wei. */
  balance: bigint | undefined;
  minimumBalance: bigint;
  warningBalance: bigint;
  /** Kind of its signer's fault, while it rests. */
  signerFault: string | undefined;
}

/** Facts that only the running process knows. No chain is asked for them. */
export interface SellerView {
  chains(): Promise<ChainView[]>;
  relayers(): RelayerView[];
  /** Reasons why new payments are refused, in words. */
  obstacles(): readonly string[];
  /** The disk of a SQLite ledger. */
  disk(): Promise<{ freeBytes: number; totalBytes: number } | undefined>;
}

/** The view of this process. */
export function createSellerView(options: {
  chains: readonly Chain[];
  settlements: ReadonlyMap<Network, NetworkSettlement>;
  metrics: SettlementMetrics;
  ledgerUrl: string;
  obstacle: () => string | undefined;
}): SellerView {
  const { chains, settlements, metrics, ledgerUrl, obstacle } = options;
  return {
    chains: () => Promise.all(chains.map((chain) => viewChain(chain, metrics))),
    relayers: () =>
      chains.flatMap(({ configuration }) => {
        const { network, relayers, retiring, minimumBalance, warningBalance } = configuration;
        const balances = settlements.get(network)?.funds.balances();
        return [...relayers, ...retiring].map((signer) => ({
          network,
          relayer: toLowerHex(signer.address),
          balance: balances?.get(signer.address),
          minimumBalance,
          warningBalance,
          signerFault: signer.fault?.()?.error.kind,
        }));
      }),
    obstacles: () => [obstacle() ?? []].flat(),
    async disk() {
      const file = databaseFileOf(ledgerUrl);
      if (file === undefined) return undefined;
      const { bavail, blocks, bsize } = await statfs(dirname(file));
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    },
  };
}

async function viewChain(
  { configuration, pool, watcher }: Chain,
  metrics: SettlementMetrics,
): Promise<ChainView> {
  const { network, rpcUrls } = configuration;
  const { head, sinceReadMs, reachable, stalled } = watcher.status();
  const requests = countOf(await metrics.nodeRequests.get(), network);
  const failures = countOf(await metrics.nodeFailures.get(), network);
  const reorganised = countOf(await metrics.reorganised.get(), network);
  return {
    network,
    chainId: chainIdOf(network),
    head: head && { number: Number(head.number), timestamp: Number(head.timestamp) },
    sinceReadMs,
    isReachable: reachable,
    isStalled: stalled,
    reorganised: reorganised(),
    endpoints: pool.status().map((status) => ({
      endpoint: status.endpoint,
      host: hostOf(rpcUrls[status.endpoint - 1] ?? ""),
      state: status.state,
      head: status.head === undefined ? undefined : Number(status.head),
      isLagging: status.lagging,
      latencyMs: status.latencyMs,
      lastFailure: status.lastFailure,
      requests: requests(status.endpoint),
      failures: failures(status.endpoint),
    })),
  };
}

/** Sums a counter of a network, by endpoint where one is named. */
function countOf(
  { values }: { values: { value: number; labels: Partial<Record<string, string | number>> }[] },
  network: Network,
): (endpoint?: number) => number {
  return (endpoint) =>
    values
      .filter(({ labels }) => labels.network === network)
      .filter(({ labels }) => endpoint === undefined || Number(labels.endpoint) === endpoint)
      .reduce((sum, { value }) => sum + value, 0);
}
