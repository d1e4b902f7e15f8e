import type { RpcCall } from "./rpc-envelope.ts";
import type { RpcEndpointError, RpcResponseError, RpcUnavailableError } from "./rpc-errors.ts";

export interface RpcRequestOptions {
  /** Restricts the request to endpoints that claim to have this block. */
  minBlock?: bigint;
  timeoutMs?: number;
  /** Abort signal: the request then rejects with its reason. */
  signal?: AbortSignal;
}

/** The outcome of one call of `requestMany`. */
export type RpcOutcome =
  | { ok: true; result: unknown; endpoint: number; failures: readonly RpcEndpointError[] }
  | {
      ok: false;
      error: RpcResponseError | RpcUnavailableError;
      /** Failures of endpoints before this outcome. */
      failures: readonly RpcEndpointError[];
    };

/** Sender of requests: a whole pool, or one endpoint of it. */
export interface RpcRequester {
  readonly chainId: number;
  /**
   * The `result` of one call, to be parsed by the caller.
   * Throws `RpcResponseError` when a node answered with an error, `RpcUnavailableError` when none
   * answered, `RpcClosedError` after `close()`.
   */
  request(call: RpcCall, options?: RpcRequestOptions): Promise<unknown>;
  /**
   * Many calls as one JSON-RPC batch in one HTTP request where the server allows it. One outcome
   * per call, in order; a failing call does not affect its neighbours.
   */
  requestMany(calls: readonly RpcCall[], options?: RpcRequestOptions): Promise<RpcOutcome[]>;
}

/** One endpoint, for reads that must see one and the same chain. */
export interface RpcEndpointHandle extends RpcRequester {
  /** Counted from 1, as in messages. */
  readonly endpoint: number;
  /** The last head that it reported; undefined before its first report. */
  head(): bigint | undefined;
}
