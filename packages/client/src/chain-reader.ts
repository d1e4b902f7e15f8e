import {
  type Address,
  type AuthorizationId,
  chainIdOf,
  eip3009Abi,
  isNetwork,
  type Network,
} from "@coinslot/protocol";
import { type ChainNode, createChainNode } from "./chain-node.ts";

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
  /** `undefined` when no endpoint that serves this network told it in time. */
  readBalance(question: {
    network: Network;
    asset: Address;
    owner: Address;
  }): Promise<bigint | undefined>;
  /**
   * Whether an authorization that has expired was used, or cancelled; `undefined` while it has not
   * expired by the chain's own clock, or when it is not known. That it was not used, all endpoints
   * have to say where there are two hosts at least; with one, the caller's own clock bounds the harm.
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
  const nodes = new Map<Network, readonly ChainNode[]>();
  const networks = Object.entries(options.rpcUrls);
  if (networks.length === 0) options.problems.push("rpcUrls names no network");
  for (const [network, given] of networks) {
    const urls = typeof given === "object" ? given : [given];
    if (!isNetwork(network)) options.problems.push("a key of rpcUrls is not eip155:<chain id>");
    else if (urls.length === 0 || !urls.every(isHttpUrl)) {
      options.problems.push(`rpcUrls["${network}"] needs http or https URLs`);
    } else {
      const timeoutMs = options.timeoutMs / urls.length;
      const chainId = chainIdOf(network);
      nodes.set(
        network,
        urls.map((url) => createChainNode(url, chainId, timeoutMs)),
      );
    }
  }

  return {
    networks: new Set(nodes.keys()),

    async readBalance({ network, asset, owner }) {
      for (const node of nodes.get(network) ?? []) {
        try {
          return await node.ask((client) =>
            client.readContract({
              address: asset,
              abi: eip3009Abi,
              functionName: "balanceOf",
              args: [owner],
            }),
          );
        } catch {
          // The next one is asked.
        }
      }
      return undefined;
    },

    async wasUsed(expiring) {
      const asked = nodes.get(expiring.id.network) ?? [];
      const answers = await Promise.all(asked.map((node) => readUse(node, expiring)));
      // A payment that counts as made, and was not, costs nobody anything.
      if (answers.includes(true)) return true;
      const isUnused = answers.length > 0 && answers.every((answer) => answer === false);
      return isUnused ? false : undefined;
    },
  };
}

/** What one node says; `undefined` when it does not know it. */
async function readUse(
  node: ChainNode,
  { id, validBefore }: Expiring,
): Promise<boolean | undefined> {
  const { asset, payer, nonce } = id;
  try {
    return await node.ask(async (client) => {
      const block = await client.getBlock();
      // The token compares with the time of its block: before that, it could still be used.
      if (block.timestamp < BigInt(validBefore)) return undefined;
      return client.readContract({
        address: asset,
        abi: eip3009Abi,
        functionName: "authorizationState",
        args: [payer, nonce],
        blockNumber: block.number,
      });
    });
  } catch {
    return undefined;
  }
}

function isHttpUrl(url: string | undefined): url is string {
  return url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}
