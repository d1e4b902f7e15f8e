import type { RpcRequester } from "@coinslot/chain";

/** A requester whose requests an abort signal ends, each by its reason. */
export function withSignal<Requester extends RpcRequester>(
  rpc: Requester,
  signal: AbortSignal,
): Requester {
  return {
    ...rpc,
    request: (call, options) => rpc.request(call, { ...options, signal }),
    requestMany: (calls, options) => rpc.requestMany(calls, { ...options, signal }),
  };
}

/** The same of a pool, and of each of its endpoints. */
export function poolWithSignal<Pool extends RpcRequester & { endpoints: readonly RpcRequester[] }>(
  pool: Pool,
  signal: AbortSignal,
): Pool {
  const endpoints = pool.endpoints.map((endpoint) => withSignal(endpoint, signal));
  return { ...withSignal(pool, signal), endpoints };
}
