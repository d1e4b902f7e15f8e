import {
  createChainClient,
  createRpcPool,
  operatorOf,
  RpcError,
  RpcNotReadyError,
  type RpcPool,
  RpcWrongChainError,
} from "@coinslot/chain";
import { onceSuccessful } from "@coinslot/concurrency";
import type { PublicClient } from "viem";
import { BridgeError } from "../bridge-error.ts";
import { type Broadcast, broadcastThroughClient, broadcastThroughPool } from "../send/broadcast.ts";
import { askChain } from "./ask-chain.ts";
import type { ChainNode } from "./witnesses.ts";

/** A chain's client for reads and broadcasts. */
export interface Connection {
  chainId: number;
  client: PublicClient;
  /** Each node by itself, for comparing their answers. */
  nodes: readonly ChainNode[];
  broadcast: Broadcast;
}

/** Connections of one bridge to its chains, made on first use. */
export interface Connections {
  source(): Promise<Connection>;
  /** `undefined`: no RPC URL was given for it. */
  target(chain: { key: string; chainId: number }): Connection | undefined;
  close(): void;
}

/** Location of the source chain: a viem client, or RPC URLs. */
export type Endpoint = { client: PublicClient } | { rpcUrls: readonly string[] };

/** Creates connections; sends no request yet. */
export function createConnections(options: {
  source: Endpoint;
  targets: ReadonlyMap<string, readonly string[]>;
}): Connections {
  const pools: RpcPool[] = [];
  const targets = new Map<string, Connection>();

  function open(chainId: number, rpcUrls: readonly string[]): Connection {
    const pool = createRpcPool({ chainId, rpcUrls });
    pools.push(pool);
    const client = createChainClient(pool);
    const nodes = pool.endpoints.map((endpoint, index) => ({
      operator: operatorOf(rpcUrls[index] ?? ""),
      client: createChainClient(endpoint),
    }));
    return { chainId, client, nodes, broadcast: broadcastThroughPool(pool) };
  }

  async function connectSource(endpoint: Endpoint): Promise<Connection> {
    if ("rpcUrls" in endpoint) return open(await findChainId(endpoint.rpcUrls), endpoint.rpcUrls);
    const { client } = endpoint;
    // A client's own `chain` does not prove where its requests go.
    const chainId = await askChain("its chain id", client.getChainId());
    return {
      chainId,
      client,
      nodes: [{ operator: "", client }],
      broadcast: broadcastThroughClient(client),
    };
  }

  return {
    source: onceSuccessful(() => connectSource(options.source)),
    target({ key, chainId }) {
      const rpcUrls = options.targets.get(key);
      const known = targets.get(key);
      if (known !== undefined || rpcUrls === undefined) return known;
      const connection = open(chainId, rpcUrls);
      targets.set(key, connection);
      return connection;
    },
    close() {
      for (const pool of pools) pool.close();
    },
  };
}

/**
 * The chain id that RPC endpoints serve.
 *
 * @throws BridgeError `rpc_unavailable`
 */
async function findChainId(rpcUrls: readonly string[]): Promise<number> {
  // No chain has the id 0, so every endpoint of this pool objects, and reports its own id.
  const pool = createRpcPool({ chainId: 0, rpcUrls });
  try {
    await pool.ready();
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const problems = error instanceof RpcNotReadyError ? error.problems : [];
    const answer = problems.find((problem) => problem instanceof RpcWrongChainError);
    if (answer !== undefined) return answer.actualChainId;
    const whys = problems.map(({ message }) => message).join("; ");
    throw new BridgeError("rpc_unavailable", `No RPC endpoint returned its chain id: ${whys}`, {
      cause: error,
    });
  } finally {
    pool.close();
  }
  throw new BridgeError("rpc_unavailable", "The RPC endpoints serve a chain with the id 0");
}
