import {
  type Address,
  type AuthorizationId,
  chainIdOf,
  eip3009Abi,
  isNetwork,
  type Network,
} from "@coinslot/protocol";
import { createPublicClient, fallback, http, type PublicClient } from "viem";

/** RPC endpoints by CAIP-2 network. Of several, the next is asked when one fails. */
export type RpcUrls = Readonly<Record<Network, string | readonly string[]>>;

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
  /** Of authorizations, those that have expired and were certainly never used; none in doubt. */
  findUnused(authorizations: readonly Expiring[]): Promise<AuthorizationId[]>;
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
    const urls = typeof given === "string" ? [given] : (given ?? []);
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

    async findUnused(authorizations) {
      const found = await Promise.all(
        authorizations.map(async (each) =>
          (await isUnused(clients.get(each.id.network), each)) ? [each.id] : [],
        ),
      );
      return found.flat();
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

async function isUnused(client: PublicClient | undefined, expiring: Expiring): Promise<boolean> {
  if (client === undefined) return false;
  const { asset, payer, nonce } = expiring.id;
  try {
    const block = await client.getBlock();
    // The token compares with the time of the block: before that, it could still be used.
    if (block.timestamp < BigInt(expiring.validBefore)) return false;
    const isUsed = await client.readContract({
      address: asset,
      abi: eip3009Abi,
      functionName: "authorizationState",
      args: [payer, nonce],
      blockNumber: block.number,
    });
    return !isUsed;
  } catch {
    return false;
  }
}

function isHttpUrl(url: unknown): boolean {
  return typeof url === "string" && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}
