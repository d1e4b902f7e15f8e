import type { EndpointOrder } from "./endpoint-order.ts";
import type { EndpointState, RpcEndpoint } from "./rpc-endpoint.ts";
import { type EndpointFailureKind, RpcEndpointError } from "./rpc-errors.ts";

export interface RpcEndpointStatus {
  endpoint: number;
  state: EndpointState;
  head: bigint | undefined;
  /**
   * Far behind two others, or more than `maxLagBlocks` behind another with an old block, at the
   * last comparison of heads.
   */
  lagging: boolean;
  /** Moving average of answered requests. */
  latencyMs: number | undefined;
  inFlight: number;
  restMs: number;
  lastFailure: EndpointFailureKind | "wrong-chain" | undefined;
}

/** The status of an endpoint at this moment. */
export function readStatus(endpoint: RpcEndpoint, order: EndpointOrder): RpcEndpointStatus {
  const problem = endpoint.problem();
  return {
    endpoint: endpoint.name.number,
    state: endpoint.state(),
    head: endpoint.head(),
    lagging: order.isLagging(endpoint),
    latencyMs: endpoint.latencyMs(),
    inFlight: endpoint.inFlight(),
    restMs: endpoint.restMs(),
    lastFailure: problem instanceof RpcEndpointError ? problem.kind : problem && "wrong-chain",
  };
}
