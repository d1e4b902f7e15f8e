import { endpointProblem, type RpcPool } from "@coinslot/chain";

/**
 * A pool that reads nothing at outvoted endpoints. Their handles stay in `endpoints`, so that they
 * can be asked whether they are back.
 */
export function createTrustedPool(pool: RpcPool, outvoted: ReadonlySet<number>): RpcPool {
  return {
    ...pool,
    onEndpoint: (read, options) =>
      pool.onEndpoint(async (endpoint) => {
        if (!outvoted.has(endpoint.endpoint)) return read(endpoint);
        const details = "more endpoints have another final block";
        throw endpointProblem(endpoint, { kind: "behind", details });
      }, options),
  };
}
