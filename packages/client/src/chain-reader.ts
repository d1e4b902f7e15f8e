import {
  type Address,
  type AuthorizationId,
  chainIdOf,
  eip3009Abi,
  isNetwork,
  type Network,
} from "@coinslot/protocol";
import { createPublicClient, fallback, http, type PublicClient } from "viem";

/**
 * RPC endpoints by CAIP-2 network. Of several, the next is asked when one fails. One may be
 * `undefined` so that `process.env` can be passed; that is a problem which is told at once.
 */
export type RpcUrls = Readonly<
  Record<Network, string | undefined | readonly (string | undefined)[]>
>;

/** An authorization, and the unix second from which on nobody can use it. */
export interface Expiring {
  id: AuthorizationId;
  validBefore: number;
}

/** What a payer asks its chains. */
export interface ChainReader {
  /** The networks on which this payer pays. */
  networks: ReadonlySet<Network>;
  /** `undefined` when no endpoint told it in time. */
  readBalance(question: {
    network: Network;
    asset: Address;
    owner: Address;
  }): Promise<bigint | undefined>;
  /**
   * Whether an authorization that has expired was used, or cancelled; `undefined` while it has not
   * expired by the chain's own clock, or when no endpoint told it.
   */
  wasUsed(expiring: Expiring): Promise<boolean | undefined>;
}

/**
 * Reads chains through the given endpoints; tells `problems` what is wrong with them. What fails is
 * answered with what is not known, never with an error: errors of RPC clients repeat the URL, and an
 * RPC URL often is a key.
 */
export function createChainReader(options: {
  rpcUrls: RpcUrls;
  /** For one question, over all endpoints of its network. */
  timeoutMs: number;
  problems: string[];
}): ChainReader {
  const clients = new Map<Network, PublicClient>();
  const networks = Object.entries(options.rpcUrls);
  if (networks.length === 0) options.problems.push("rpcUrls names no network");
  for (const [network, given] of networks) {
    const urls = typeof given === "object" ? given : [given];
    if (!isNetwork(network)) options.problems.push("a key of rpcUrls is not eip155:<chain id>");
    else if (urls.length === 0 || !urls.every(isHttpUrl)) {
      options.problems.push(`rpcUrls["${network}"] needs http or https URLs`);
    } else clients.set(network, createClient(network, urls, options.timeoutMs));
  }

  return {
    networks: new Set(clients.keys()),

    async readBalance({ network, asset, owner }) {
      try {
        return await clients.get(network)?.readContract({
          address: asset,
          abi: eip3009Abi,
          functionName: "balanceOf",
          args: [owner],
        });
      } catch {
        return undefined;
      }
    },

    async wasUsed({ id, validBefore }) {
      const { network, asset, payer, nonce } = id;
      try {
        const client = clients.get(network);
        const block = await client?.getBlock();
        // The token compares with the time of its block: before that, it could still be used.
        if (block === undefined || block.timestamp < BigInt(validBefore)) return undefined;
        return await client?.readContract({
          address: asset,
          abi: eip3009Abi,
          functionName: "authorizationState",
          args: [payer, nonce],
          blockNumber: block.number,
        });
      } catch {
        return undefined;
      }
    },
  };
}

function createClient(network: Network, urls: readonly string[], timeoutMs: number): PublicClient {
  const timeout = timeoutMs / urls.length;
  return createPublicClient({
    chain: {
      id: chainIdOf(network),
      name: network,
      nativeCurrency: { name: "Native coin", symbol: "GAS", decimals: 18 },
      rpcUrls: { default: { http: [] } },
    },
    transport: fallback(
      urls.map((url) => http(url, { timeout, retryCount: 0 })),
      { retryCount: 0 },
    ),
  });
}

function isHttpUrl(url: string | undefined): url is string {
  return url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}
