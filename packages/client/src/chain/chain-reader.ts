import {
  type Address,
  type AuthorizationId,
  chainIdOf,
  eip3009Abi,
  hasWitnesses,
  isNetwork,
  type Network,
} from "@coinslot/protocol";
import { type ChainNode, createChainNode } from "./chain-node.ts";

/**
 * RPC endpoints by CAIP-2 network. Of several, the next is asked when one fails. A URL may be
 * `undefined` so that `process.env` can be passed; that is reported as a problem at once.
 */
export type RpcUrls = Readonly<
  Record<Network, string | undefined | readonly (string | undefined)[]>
>;

/** An authorization, and the unix second from which on it cannot be used. */
export interface Expiring {
  id: AuthorizationId;
  validBefore: number;
}

/**
 * Minimum time from the end of an authorization to the newest block, before the chain's answer on
 * it is final. A reorganisation of that depth is not expected.
 */
export const settledHistorySeconds = 600;

/** Chain queries of a payer. */
export interface ChainReader {
  /** The networks on which this payer pays. */
  networks: ReadonlySet<Network>;
  /** `undefined` when no endpoint that serves this network returned it in time. */
  readBalance(question: {
    network: Network;
    asset: Address;
    owner: Address;
  }): Promise<bigint | undefined>;
  /**
   * Resolves to whether an expired authorization was used, or cancelled. `undefined` until it has
   * expired by the chain's own clock `settledHistorySeconds` ago, or when it is not known. Unused
   * needs all endpoints to agree, of two hosts at least: one host may deny a transfer for ever.
   */
  wasUsed(expiring: Expiring): Promise<boolean | undefined>;
  /**
   * Resolves to whether an authorization can be executed from now on; `undefined` when it is not
   * known. `false` needs all endpoints to agree.
   */
  isExecutable(expiring: Expiring): Promise<boolean | undefined>;
  /**
   * Resolves to whether an authorization is used, or cancelled, in the newest block of any
   * endpoint; `undefined` when none returned it.
   */
  isUsed(id: AuthorizationId): Promise<boolean | undefined>;
  /** The endpoints of a network, the preferred one first. */
  nodesOf(network: Network): readonly ChainNode[];
  /** True if these are of two hosts at least, so that one can contradict the other. */
  hasWitnesses(network: Network): boolean;
  /** The time by each endpoint that returned one, in unix milliseconds. */
  readTimes(): Promise<number[]>;
}

/**
 * Reads chains through the given endpoints, and adds their faults to `problems`. A failure is
 * returned as unknown, never thrown. Errors of RPC clients repeat the URL, and an RPC URL often
 * holds a key.
 */
export function createChainReader(options: {
  rpcUrls: RpcUrls;
  /** For one question, over all endpoints of its network. */
  timeoutMs: number;
  problems: string[];
}): ChainReader {
  const nodes = new Map<Network, readonly ChainNode[]>();
  /** Networks whose endpoints are of two hosts at least, so that one can contradict the other. */
  const witnessed = new Set<Network>();
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
      if (hasWitnesses(urls)) witnessed.add(network);
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
          // Failover to the next endpoint.
        }
      }
      return undefined;
    },

    async wasUsed(expiring) {
      // The token compares with the time of its block: before that, it could still be used.
      const end = BigInt(expiring.validBefore + settledHistorySeconds);
      const found = await readByAll(expiring);
      const answers = found.map((use) => (use && use.time >= end ? use.isUsed : undefined));
      // Fail closed: a payment wrongly counted as made only takes room in the budget.
      if (answers.includes(true)) return true;
      const isUnused =
        witnessed.has(expiring.id.network) && answers.every((used) => used === false);
      return isUnused ? false : undefined;
    },

    async isExecutable(expiring) {
      const found = await readByAll(expiring);
      const end = BigInt(expiring.validBefore);
      const answers = found.map((use) => use && !use.isUsed && use.time < end);
      if (answers.includes(true)) return true;
      return answers.length > 0 && answers.every((answer) => answer === false) ? false : undefined;
    },

    async isUsed(id) {
      const asked = nodes.get(id.network) ?? [];
      const readings = asked.map((node) => readUse(node, id));
      const proofs = readings.map(async (reading) => (await reading)?.isUsed || Promise.reject());
      // One that shows it is enough: another endpoint may hang until its time is over.
      if (await Promise.any(proofs).catch(() => false)) return true;
      const found = await Promise.all(readings);
      return found.every((use) => use === undefined) ? undefined : false;
    },

    nodesOf: (network) => nodes.get(network) ?? [],
    hasWitnesses: (network) => witnessed.has(network),

    async readTimes() {
      const times = await Promise.all([...nodes.values()].flat().map(readTime));
      return times.filter((time) => time !== undefined);
    },
  };

  function readByAll({ id }: Expiring): Promise<(Use | undefined)[]> {
    const asked = nodes.get(id.network) ?? [];
    return Promise.all(asked.map((node) => readUse(node, id)));
  }
}

/**
 * Use or cancellation of an authorization in a node's newest block, and that block's time in Unix
 * seconds.
 */
interface Use {
  time: bigint;
  isUsed: boolean;
}

// On a chain that makes blocks for transactions only, the newest block may be a day old. The
// pending one has the current time.
async function readTime(node: ChainNode): Promise<number | undefined> {
  const tags = ["latest", "pending"] as const;
  try {
    const blocks = await node.ask((client) =>
      Promise.allSettled(tags.map((blockTag) => client.getBlock({ blockTag }))),
    );
    const times = blocks.flatMap((block) =>
      block.status === "fulfilled" ? [Number(block.value.timestamp) * 1000] : [],
    );
    return times.length === 0 ? undefined : Math.max(...times);
  } catch {
    return undefined;
  }
}

/** `undefined` when the node does not know it. */
async function readUse(node: ChainNode, id: AuthorizationId): Promise<Use | undefined> {
  const { asset, payer, nonce } = id;
  try {
    return await node.ask(async (client) => {
      const { number: blockNumber, timestamp: time } = await client.getBlock();
      const isUsed = await client.readContract({
        address: asset,
        abi: eip3009Abi,
        functionName: "authorizationState",
        args: [payer, nonce],
        blockNumber,
      });
      return { time, isUsed };
    });
  } catch {
    return undefined;
  }
}

function isHttpUrl(url: string | undefined): url is string {
  return url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}
