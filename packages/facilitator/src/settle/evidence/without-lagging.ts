import type { RpcEndpointHandle, RpcPool } from "@coinslot/chain";

/**
 * Endpoints of a pool that do not lag. An old block passes what the chain reverts, so one that lags
 * has no say about trials. A made-up head alone makes no endpoint lag.
 */
export function withoutLagging({
  endpoints,
  status,
}: Pick<RpcPool, "endpoints" | "status">): RpcEndpointHandle[] {
  const lagging = new Set(status().flatMap((each) => (each.lagging ? each.endpoint : [])));
  return endpoints.filter(({ endpoint }) => !lagging.has(endpoint));
}
