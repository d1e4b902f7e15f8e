import { askInTurn } from "./ask-in-turn.ts";
import type { EndpointOrder, EndpointSource } from "./endpoint-order.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import { type EndpointProblem, RpcUnavailableError } from "./rpc-errors.ts";
import type { RpcRequester, RpcRequestOptions } from "./rpc-requester.ts";

/** The parts of a pool that a request needs. */
export interface RequesterContext {
  chainId: number;
  /** For one attempt at one endpoint. */
  timeoutMs: number;
  order: EndpointOrder;
  /** Aborted when the pool closes. */
  closing: AbortSignal;
}

/** Sends requests to the endpoints of one source, in its order. */
export function createRequester(
  context: RequesterContext,
  endpoints: EndpointSource,
): RpcRequester {
  const { chainId, timeoutMs, closing } = context;
  const unavailable = (subject: string, failures: readonly EndpointProblem[]) =>
    unavailableError(context, subject, failures);

  async function requestMany(calls: readonly RpcCall[], requestOptions: RpcRequestOptions = {}) {
    closing.throwIfAborted();
    return askInTurn({
      calls,
      endpoints: (passOver) => endpoints(requestOptions, passOver),
      timeoutMs: requestOptions.timeoutMs ?? timeoutMs,
      signal: requestOptions.signal,
      unavailable,
    });
  }
  return {
    chainId,
    requestMany,
    async request(call, requestOptions) {
      const [outcome] = await requestMany([call], requestOptions);
      if (outcome?.ok) return outcome.result;
      throw outcome?.error ?? unavailable(call.method, []);
    },
  };
}

/** No endpoint gave an answer. */
export function unavailableError(
  { chainId, order }: Pick<RequesterContext, "chainId" | "order">,
  subject: string,
  failures: readonly EndpointProblem[],
): RpcUnavailableError {
  const soonest = order.soonestMs();
  const retryAfterMs = Number.isFinite(soonest) ? Math.ceil(soonest) : 0;
  return new RpcUnavailableError({ chainId, subject, failures, retryAfterMs });
}
