import { endpointProblem, type RpcPool } from "@coinslot/chain";

/**
 * The part of a pool that reads at one endpoint after the other. It has no `request`, which would
 * pass the vote over.
 */
export type TrustedPool = Pick<RpcPool, "onEndpoint" | "endpoints">;

/**
 * A pool that reads nothing at outvoted endpoints. Their handles stay in `endpoints`, so that they
 * can be asked whether they are back.
 */
export function createTrustedPool(pool: RpcPool, outvoted: ReadonlySet<number>): TrustedPool {
  return {
    endpoints: pool.endpoints,
    onEndpoint: (read, options) =>
      pool.onEndpoint(async (endpoint) => {
        if (!outvoted.has(endpoint.endpoint)) return read(endpoint);
        const details = "more endpoints have another final block";
        throw endpointProblem(endpoint, { kind: "behind", details });
      }, options),
  };
}
