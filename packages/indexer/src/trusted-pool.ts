import {
  type Clock,
  endpointProblem,
  getChainPreset,
  plausibleBlocks,
  type RpcEndpointHandle,
  type RpcPool,
  RpcResponseError,
  RpcUnavailableError,
} from "@coinslot/chain";

/**
 * The part of a pool that reads at one endpoint after the other. It has no `request`, which would
 * pass the vote over.
 */
export type TrustedPool = Pick<RpcPool, "onEndpoint" | "endpoints" | "compareHeads"> & {
  /**
   * Throws an error that makes the pool ask the next endpoint where a head is far above the
   * second-highest one: it may be made up. Lagging and outvoted endpoints have no say. Where no
   * other one answers, any head is taken. Of two, the lower head may be the wrong one: a head that
   * the chain can have reached since the last one is taken. Before any, the first endpoint's is.
   */
  checkHead(endpoint: RpcEndpointHandle, head: number): Promise<void>;
  /** The head that an earlier process has seen, and the time since then. */
  recallHead(head: number, agoMs: number): void;
  /** Reads at this endpoint first, until it fails or lags. Undefined: in the order of the list. */
  lead(endpoint: number | undefined): void;
  leader(): number | undefined;
};

/** Number of blocks from which on a head, or a gap of final blocks, is far away. */
export const farBlocks = 64;
/** Interval of comparisons of heads while no second one is known. */
const quietMs = 15_000;

/**
 * A pool that reads nothing at outvoted endpoints. Their handles stay in `endpoints`, so that they
 * can be asked whether they are back.
 */
export function createTrustedPool(
  pool: RpcPool,
  { chainId, outvoted, clock }: { chainId: number; outvoted: ReadonlySet<number>; clock: Clock },
): TrustedPool {
  const { endpoints, compareHeads } = pool;
  const { blockTimeMs } = getChainPreset(chainId);
  /** The second-highest head, when it was last asked for. */
  let second = Number.NEGATIVE_INFINITY;
  /** The highest head that the pace of the chain explains, and when it was accepted. */
  let known: { head: number; at: number } | undefined;
  let aloneAt = Number.NEGATIVE_INFINITY;
  let leader: RpcEndpointHandle | undefined;
  const isLagging = ({ endpoint }: RpcEndpointHandle) =>
    pool.status().some((each) => each.endpoint === endpoint && each.lagging);

  /** Only as far as the chain's pace: blocks beyond it must not add up. */
  function accept(head: number): void {
    const at = clock.now();
    if (known === undefined) known = { head, at };
    else if (head > known.head) {
      const paced = plausibleBlocks(at - known.at, blockTimeMs) - plausibleBlocks(0);
      known = { head: Math.min(head, known.head + paced), at };
    }
  }

  return {
    endpoints,
    compareHeads,
    async checkHead(endpoint, head) {
      if (endpoints.length === 1) return;
      const isAlone = clock.now() - aloneAt < quietMs;
      if (isAlone || head <= second + farBlocks) return accept(head);
      const heads = (await compareHeads()).filter(
        (each) => !each.isLagging && !outvoted.has(each.endpoint),
      );
      const [highest, next] = heads.map(({ number }) => Number(number)).sort((a, b) => b - a);
      if (highest === undefined || next === undefined) {
        aloneAt = clock.now();
        return accept(head);
      }
      if (heads.length > 2 || head <= next + farBlocks) {
        second = next;
        // A lower one says nothing about the time of the highest.
        if (known === undefined || next > known.head) known = { head: next, at: clock.now() };
        if (head <= next + farBlocks) return;
      } else if (known === undefined) {
        if (heads[0]?.endpoint === endpoint.endpoint) return accept(head);
      } else if (head <= known.head + plausibleBlocks(clock.now() - known.at, blockTimeMs))
        return accept(head);
      const details = `its head ${head} is far above ${next}, which another has: it may be made up`;
      throw endpointProblem(endpoint, { kind: "malformed", details });
    },
    recallHead(head, agoMs) {
      known ??= { head, at: clock.now() - Math.max(0, agoMs) };
    },
    lead(number) {
      leader = endpoints.find(({ endpoint }) => endpoint === number);
    },
    leader: () => leader?.endpoint,
    async onEndpoint(read, options) {
      const first = leader;
      if (first !== undefined && isLagging(first)) leader = undefined;
      const isFarEnough =
        options?.minBlock === undefined || (first?.head() ?? -1n) >= options.minBlock;
      if (first !== undefined && first === leader && isFarEnough && !outvoted.has(first.endpoint)) {
        try {
          return await read(first);
        } catch (error) {
          options?.signal?.throwIfAborted();
          // The others are asked, and this one in its turn. A range too large is the caller's.
          if (error instanceof RpcUnavailableError) leader = undefined;
          else if (!(error instanceof RpcResponseError) || error.method === "eth_getLogs")
            throw error;
        }
      }
      return pool.onEndpoint(async (endpoint) => {
        if (!outvoted.has(endpoint.endpoint)) return read(endpoint);
        const details = "more endpoints have another final block";
        throw endpointProblem(endpoint, { kind: "behind", details });
      }, options);
    },
  };
}
