import { type Clock, systemClock } from "../clock.ts";
import { createNewHeads } from "../heads/new-heads.ts";
import { askInTurn } from "./ask-in-turn.ts";
import { createEndpointOrder, type EndpointSource } from "./endpoint-order.ts";
import { type HttpPost, httpPost } from "./http-post.ts";
import { createRpcEndpoint, type EndpointEvent, type EndpointState } from "./rpc-endpoint.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import {
  type EndpointFailureKind,
  type EndpointProblem,
  RpcClosedError,
  RpcEndpointError,
  RpcNotReadyError,
  RpcUnavailableError,
} from "./rpc-errors.ts";
import type { RpcEndpointHandle, RpcRequester, RpcRequestOptions } from "./rpc-requester.ts";
import { createRedactor, parseRpcUrls } from "./rpc-url.ts";

export interface RpcPoolOptions {
  chainId: number;
  /**
   * In order of preference, http or https. Those that begin with ws or wss are asked nothing: there
   * new heads are subscribed to. Keys in them never reach an error, event or status.
   */
  rpcUrls: readonly string[];
  /** For one attempt at one endpoint, its body included. Default 10 s. */
  timeoutMs?: number;
  /** How long a request may wait, when all endpoints fail or rest, for one to come back. Default 2 s. */
  patienceMs?: number;
  /** Limit of JSON-RPC calls per second and endpoint. Default: none. */
  callsPerSecond?: number;
  /** Limit of HTTP requests at a time and endpoint. Default 32. */
  maxInFlight?: number;
  /** Limit of calls in one JSON-RPC batch; lowered by itself where a server takes fewer. Default 100. */
  maxBatchSize?: number;
  /** Default 64 MiB. */
  maxResponseBytes?: number;
  /** An endpoint more than this behind the best is used last. Default 5. */
  maxLagBlocks?: number;
  /** How often the endpoints' heads are compared, while there is traffic and more than one. Default 15 s. */
  headCheckMs?: number;
  /** Failures in a row until an endpoint rests. Default 3. */
  failureThreshold?: number;
  /** First rest of a failing endpoint, doubled up to 30 s. Default 1 s. */
  restMs?: number;
  onEvent?: (event: RpcPoolEvent) => void;
  clock?: Clock;
  /** How requests are sent. Default `httpPost`. */
  post?: HttpPost;
}

/** What an operator may want to log or count. */
export type RpcPoolEvent = EndpointEvent;

export interface RpcEndpointStatus {
  endpoint: number;
  state: EndpointState;
  head: bigint | undefined;
  /** More than `maxLagBlocks` behind the best when heads were compared last. */
  lagging: boolean;
  /** Moving average of answered requests. */
  latencyMs: number | undefined;
  inFlight: number;
  restMs: number;
  lastFailure: EndpointFailureKind | "wrong-chain" | undefined;
}

export interface RpcPool extends RpcRequester {
  /**
   * Checks every endpoint's chain id. Rejects with one `RpcNotReadyError` when an endpoint serves
   * another chain, or when none can be reached; one that is merely down is told by `status()`.
   */
  ready(): Promise<void>;
  /**
   * Runs `read` against one healthy endpoint; when that one fails, again from its beginning against
   * the next. So `read` sees one chain only, and must not have effects that cannot be repeated.
   */
  onEndpoint<T>(
    read: (endpoint: RpcEndpointHandle) => Promise<T>,
    options?: Pick<RpcRequestOptions, "minBlock" | "signal">,
  ): Promise<T>;
  /** Every endpoint by itself, in order, e.g. to spread work over them. Their requests do not fail over. */
  readonly endpoints: readonly RpcEndpointHandle[];
  /**
   * Calls `listener` whenever a node says over WebSocket that there is a new head, as long as anybody
   * listens; never, where no URL is a WebSocket's. Returns what ends it. It is a hint to look.
   */
  onNewHead(listener: () => void): () => void;
  /** Asks every endpoint for its head, and moves those that lag to the end of the order. */
  compareHeads(): Promise<void>;
  status(): RpcEndpointStatus[];
  /** Aborts what is in flight, and refuses what comes after. */
  close(): void;
}

/**
 * JSON-RPC over HTTP to one chain through several endpoints, the first that is well being used.
 *
 * An endpoint's chain id is checked before its first use and after every rest. Reads move to the
 * next endpoint when one fails, and go round again while `patienceMs` lasts; an error that a node
 * answers with is an answer, and is not retried. A call with effects (`isRepeatable` says which)
 * moves on only when it is certain that no node has seen it.
 */
export function createRpcPool(options: RpcPoolOptions): RpcPool {
  const { chainId, timeoutMs = 10_000, clock = systemClock } = options;
  const urls = parseRpcUrls(options.rpcUrls);
  const closing = new AbortController();
  const redact = createRedactor(urls);
  const count = urls.http.length + urls.sockets.length;
  const nameOf = (number: number) => ({ number, label: `endpoint ${number} of ${count}` });
  const all = urls.http.map((url) =>
    createRpcEndpoint({
      name: nameOf(url.number),
      chainId,
      url,
      redact,
      clock,
      post: options.post ?? httpPost,
      timeoutMs,
      maxBatchSize: options.maxBatchSize ?? 100,
      maxInFlight: options.maxInFlight ?? 32,
      maxResponseBytes: options.maxResponseBytes ?? 64 * 1024 * 1024,
      callsPerSecond: options.callsPerSecond,
      failureThreshold: options.failureThreshold ?? 3,
      restMs: options.restMs ?? 1_000,
      maxRestMs: 30_000,
      closing: closing.signal,
      emit,
    }),
  );
  const order = createEndpointOrder({
    endpoints: all,
    timeoutMs,
    patienceMs: options.patienceMs ?? 2_000,
    maxLagBlocks: options.maxLagBlocks ?? 5,
    headCheckMs: options.headCheckMs ?? 15_000,
    clock,
    closing: closing.signal,
  });

  function emit(event: RpcPoolEvent) {
    try {
      options.onEvent?.(event);
    } catch {
      // Whoever listens must not be able to fail a request.
    }
  }

  function unavailable(subject: string, failures: readonly EndpointProblem[]) {
    const soonest = order.soonestMs();
    const retryAfterMs = Number.isFinite(soonest) ? Math.ceil(soonest) : 0;
    return new RpcUnavailableError({ chainId, subject, failures, retryAfterMs });
  }

  function requester(endpoints: EndpointSource): RpcRequester {
    async function requestMany(calls: readonly RpcCall[], requestOptions: RpcRequestOptions = {}) {
      closing.signal.throwIfAborted();
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

  const newHeads = createNewHeads({
    chainId,
    clock,
    sockets: urls.sockets.map(({ number, href }) => ({ href, name: nameOf(number) })),
    emit,
  });
  const handles = all.map(
    (endpoint): RpcEndpointHandle => ({
      endpoint: endpoint.name.number,
      head: endpoint.head,
      ...requester(order.only(endpoint)),
    }),
  );

  return {
    ...requester(order.candidates),
    endpoints: handles,
    compareHeads: order.compareHeads,
    async ready() {
      closing.signal.throwIfAborted();
      await Promise.all(all.map((endpoint) => endpoint.check()));
      closing.signal.throwIfAborted();
      const wrong = all.filter((endpoint) => endpoint.state() === "wrong-chain");
      if (wrong.length === 0 && all.some((endpoint) => endpoint.state() === "ready")) return;
      const problems = all.flatMap((endpoint) =>
        endpoint.state() === "ready" ? [] : (endpoint.problem() ?? []),
      );
      throw new RpcNotReadyError(chainId, problems);
    },
    async onEndpoint(read, requestOptions = {}) {
      closing.signal.throwIfAborted();
      const failures: EndpointProblem[] = [];
      for await (const endpoint of order.candidates(requestOptions, (problem) =>
        failures.push(problem),
      )) {
        const handle = handles.find((each) => each.endpoint === endpoint.name.number);
        if (!handle) break;
        try {
          return await read(handle);
        } catch (error) {
          if (!(error instanceof RpcUnavailableError)) throw error;
          failures.push(...error.failures);
        }
      }
      throw unavailable("a consistent read", failures);
    },
    status() {
      return all.map((endpoint) => {
        const problem = endpoint.problem();
        return {
          endpoint: endpoint.name.number,
          state: endpoint.state(),
          head: endpoint.head(),
          lagging: order.isLagging(endpoint),
          latencyMs: endpoint.latencyMs(),
          inFlight: endpoint.inFlight(),
          restMs: endpoint.restMs(),
          lastFailure:
            problem instanceof RpcEndpointError ? problem.kind : problem && "wrong-chain",
        };
      });
    },
    onNewHead: newHeads.listen,
    close() {
      newHeads.close();
      if (!closing.signal.aborted) closing.abort(new RpcClosedError(chainId));
    },
  };
}
