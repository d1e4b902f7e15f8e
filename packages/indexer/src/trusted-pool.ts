import { type Clock, endpointProblem, type RpcEndpointHandle, type RpcPool } from "@coinslot/chain";

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
  /** Reads at this endpoint first, until it fails. */
  lead(endpoint: number): void;
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
    async onEndpoint(read, options) {
      const first = leader;
      const isFarEnough =
        options?.minBlock === undefined || (first?.head() ?? -1n) >= options.minBlock;
      if (first !== undefined && isFarEnough && !outvoted.has(first.endpoint)) {
        try {
          return await read(first);
        } catch {
          options?.signal?.throwIfAborted();
          // The others are asked, and this one in its turn.
          leader = undefined;
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
