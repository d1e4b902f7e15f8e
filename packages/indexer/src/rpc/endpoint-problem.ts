import { RpcEndpointError, type RpcEndpointHandle, RpcUnavailableError } from "@coinslot/chain";

/**
 * An endpoint answered, and the answer is of no use: it does not know a block that it should know, or contradicts
 * itself. Thrown inside `pool.onEndpoint` it makes the pool ask the next one.
 */
export function endpointProblem(
  endpoint: RpcEndpointHandle,
  { kind, details }: { kind: "behind" | "malformed"; details: string },
): RpcUnavailableError {
  const name = { number: endpoint.endpoint, label: `endpoint ${endpoint.endpoint}` };
  const failure = new RpcEndpointError({ name, kind, details, maybeSent: true });
  return new RpcUnavailableError({
    chainId: endpoint.chainId,
    subject: "a question about its blocks",
    failures: [failure],
    retryAfterMs: 0,
  });
}
