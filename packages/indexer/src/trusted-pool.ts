import {
  type Clock,
  endpointProblem,
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
   * other one answers, any head is taken.
   */
  checkHead(endpoint: RpcEndpointHandle, head: number): Promise<void>;
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
  { outvoted, clock }: { outvoted: ReadonlySet<number>; clock: Clock },
): TrustedPool {
  const { endpoints, compareHeads } = pool;
  /** The second-highest head, when it was last asked for. */
  let second = Number.NEGATIVE_INFINITY;
  let aloneAt = Number.NEGATIVE_INFINITY;
  let leader: RpcEndpointHandle | undefined;
  const isLagging = ({ endpoint }: RpcEndpointHandle) =>
    pool.status().some((each) => each.endpoint === endpoint && each.lagging);

  return {
    endpoints,
    compareHeads,
    async checkHead(endpoint, head) {
      if (endpoints.length === 1 || head <= second + farBlocks) return;
      if (clock.now() - aloneAt < quietMs) return;
      const heads = (await compareHeads())
        .filter((each) => !each.isLagging && !outvoted.has(each.endpoint))
        .map(({ number }) => Number(number))
        .sort((a, b) => b - a);
      if (heads[1] === undefined) {
        aloneAt = clock.now();
        return;
      }
      second = heads[1];
      if (head <= second + farBlocks) return;
      const details = `its head ${head} is far above ${second}, which another has: it may be made up`;
      throw endpointProblem(endpoint, { kind: "malformed", details });
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
          // The others are asked, and this one in its turn. Too large a range is the caller's to cut.
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
