import { RpcEndpointError, RpcUnavailableError } from "./rpc-errors.ts";
import type { RpcEndpointHandle } from "./rpc-requester.ts";

/**
 * An endpoint's answer is of no use: it lacks a block that it should have, or contradicts itself.
 * Thrown inside `pool.onEndpoint` the error makes the pool ask the next endpoint.
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
