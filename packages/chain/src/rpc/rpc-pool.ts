import { getChainPreset } from "../chain-presets.ts";
import { type Clock, systemClock } from "../clock.ts";
import { createNewHeads, type NewHeads } from "../heads/new-heads.ts";
import { createRequester, type RequesterContext, unavailableError } from "./create-requester.ts";
import { type ComparedHead, createEndpointOrder, type EndpointOrder } from "./endpoint-order.ts";
import { type RpcEndpointStatus, readStatus } from "./endpoint-status.ts";
import { type HttpPost, httpPost } from "./http-post.ts";
import { isChainsWord } from "./is-chains-word.ts";
import { createRpcEndpoint, type EndpointEvent, type RpcEndpoint } from "./rpc-endpoint.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import {
  type EndpointProblem,
  RpcClosedError,
  RpcNotReadyError,
  RpcResponseError,
  RpcUnavailableError,
} from "./rpc-errors.ts";
import type { RpcEndpointHandle, RpcRequester, RpcRequestOptions } from "./rpc-requester.ts";
import { createRedactor, parseRpcUrls } from "./rpc-url.ts";

export interface RpcPoolOptions {
  chainId: number;
  /**
   * In order of preference, http or https. URLs that begin with ws or wss receive no requests: they
   * serve subscriptions to new heads. Keys in them never reach an error, event or status.
   */
  rpcUrls: readonly string[];
  /** For one attempt at one endpoint, its body included. Default 10 s. */
  timeoutMs?: number;
  /** Longest wait of a request for an endpoint to come back, when all fail or rest. Default 2 s. */
  patienceMs?: number;
  /**
   * Limit of the JSON-RPC calls of an endpoint in any second. Broadcasts and receipts go before
   * other calls; every fifth turn is that of the others. Default: none.
   */
  callsPerSecond?: number;
  /** Limit of HTTP requests at a time and endpoint. Default 32. */
  maxInFlight?: number;
  /**
   * Limit of calls in one JSON-RPC batch; lowered automatically where a server takes fewer. Default
   * 100.
   */
  maxBatchSize?: number;
  /** Default 64 MiB. */
  maxResponseBytes?: number;
  /**
   * An endpoint more than this behind another is used last, if its newest block is old: the other
   * head may be made up. So is one behind two others by the blocks of five seconds more. Without a
   * known block time, by 64. Default 5.
   */
  maxLagBlocks?: number;
  /**
   * Interval of the comparison of the endpoints' heads, while there is traffic and more than one.
   * Default 15 s.
   */
  headCheckMs?: number;
  /** Consecutive failures until an endpoint rests. Default 3. */
  failureThreshold?: number;
  /** First rest of a failing endpoint, doubled up to 30 s. Default 1 s. */
  restMs?: number;
  onEvent?: (event: RpcPoolEvent) => void;
  /** Called for each HTTP request that is sent, with its calls: providers bill each of them. */
  onRequest?: (request: { endpoint: number; calls: readonly RpcCall[] }) => void;
  clock?: Clock;
  /** Unix milliseconds, for the age of blocks. Default: the system's time. */
  now?: () => number;
  /** Transport of requests. Default `httpPost`. */
  post?: HttpPost;
}

/** Event for an operator's log or metrics. */
export type RpcPoolEvent = EndpointEvent;

export interface RpcPool extends RpcRequester {
  /**
   * Checks every endpoint's chain id. Rejects with one `RpcNotReadyError` when no endpoint serves
   * the pool's chain. `status()` shows those that are down or serve another one: these are not
   * used, and are asked again later.
   */
  ready(): Promise<void>;
  /**
   * Runs `read` against one healthy endpoint; when that one fails, again from its beginning against
   * the next. `read` therefore sees one chain only, and must not have effects that cannot be
   * repeated. An error that the node itself returns sends it to the next one, too, but for
   * `eth_getLogs`: a range of blocks that one node finds too large is the caller's to cut.
   */
  onEndpoint<T>(
    read: (endpoint: RpcEndpointHandle) => Promise<T>,
    options?: Pick<RpcRequestOptions, "minBlock" | "signal">,
  ): Promise<T>;
  /**
   * Handles of single endpoints, in order, e.g. to spread work over them. Their requests do not
   * fail over.
   */
  readonly endpoints: readonly RpcEndpointHandle[];
  /**
   * Calls `listener` for each WebSocket notification of a new head; never, where no URL is a
   * WebSocket's. The connections stand while there is a listener. Returns the unsubscribe function.
   * A notification is a hint to read the chain.
   */
  onNewHead(listener: () => void): () => void;
  /** True if a URL is a WebSocket's. */
  readonly announcesHeads: boolean;
  /**
   * Asks every endpoint for its head, and moves lagging ones to the end of the order. Resolves to
   * the heads of those that answer.
   */
  compareHeads(): Promise<ComparedHead[]>;
  status(): RpcEndpointStatus[];
  /** Aborts requests in flight, and refuses later ones. */
  close(): void;
}

/**
 * JSON-RPC over HTTP to one chain through several endpoints; requests go to the first healthy one.
 *
 * An endpoint's chain id is checked before its first use and after every rest. Reads fail over to
 * the next endpoint, and go round again while `patienceMs` lasts. A revert is an answer. Another
 * error that a node returns is one where the other endpoints return an error, too. So is a
 * malformed result. A call with effects (see `isRepeatable`) moves on only when it is certain that
 * no node has seen it.
 *
 * @example
 * ```ts
 * const pool = createRpcPool({
 *   chainId: 9745,
 *   // In order of preference: the second takes over while the first one fails.
 *   rpcUrls: ["https://rpc.plasma.to", process.env.COINSLOT_RPC_URL ?? "https://rpc.plasma.to"],
 *   onEvent: (event) => console.log(event),
 * });
 * await pool.ready();
 *
 * console.log(await pool.request({ method: "eth_gasPrice" })); // unknown: the caller parses it
 * ```
 */
export function createRpcPool(options: RpcPoolOptions): RpcPool {
  const context = createContext(options);
  const { order, newHeads } = context;
  return {
    ...createRequester(context.sending, order.candidates),
    endpoints: context.handles,
    compareHeads: order.compareHeads,
    ready: () => checkEndpoints(context),
    onEndpoint: (read, requestOptions) => readOnEndpoint(context, read, requestOptions),
    status: () => context.endpoints.map((endpoint) => readStatus(endpoint, order)),
    onNewHead: newHeads.listen,
    announcesHeads: context.announcesHeads,
    close() {
      newHeads.close();
      if (!context.closing.signal.aborted)
        context.closing.abort(new RpcClosedError(context.chainId));
    },
  };
}

/** The parts of one pool. */
interface PoolContext {
  chainId: number;
  endpoints: readonly RpcEndpoint[];
  handles: readonly RpcEndpointHandle[];
  order: EndpointOrder;
  newHeads: NewHeads;
  announcesHeads: boolean;
  /** The parts that a request needs. */
  sending: RequesterContext;
  closing: AbortController;
}

function createContext(options: RpcPoolOptions): PoolContext {
  const { chainId, timeoutMs = 10_000, clock = systemClock } = options;
  const urls = parseRpcUrls(options.rpcUrls);
  const closing = new AbortController();
  const redact = createRedactor(urls);
  const count = urls.http.length + urls.sockets.length;
  const nameOf = (number: number) => ({ number, label: `endpoint ${number} of ${count}` });
  const emit = createEmitter(options.onEvent);
  const endpoints = urls.http.map((url) =>
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
      onRequest: (calls) => options.onRequest?.({ endpoint: url.number, calls }),
      emit,
    }),
  );
  const order = createEndpointOrder({
    endpoints,
    timeoutMs,
    patienceMs: options.patienceMs ?? 2_000,
    maxLagBlocks: options.maxLagBlocks ?? 5,
    blockTimeMs: getChainPreset(chainId).blockTimeMs,
    headCheckMs: options.headCheckMs ?? 15_000,
    clock,
    now: options.now ?? Date.now,
    closing: closing.signal,
  });
  const newHeads = createNewHeads({
    chainId,
    clock,
    sockets: urls.sockets.map(({ number, href }) => ({ href, name: nameOf(number) })),
    emit,
  });
  const sending = { chainId, timeoutMs, order, closing: closing.signal };
  const handles = endpoints.map(
    (endpoint): RpcEndpointHandle => ({
      endpoint: endpoint.name.number,
      head: endpoint.head,
      ...createRequester(sending, order.only(endpoint)),
    }),
  );
  const announcesHeads = urls.sockets.length > 0;
  return { chainId, endpoints, handles, order, newHeads, announcesHeads, sending, closing };
}

function createEmitter(listener: ((event: RpcPoolEvent) => void) | undefined) {
  return function emit(event: RpcPoolEvent): void {
    try {
      listener?.(event);
    } catch {
      // A listener must not be able to fail a request.
    }
  };
}

async function checkEndpoints({ chainId, endpoints, closing }: PoolContext): Promise<void> {
  closing.signal.throwIfAborted();
  await Promise.all(endpoints.map((endpoint) => endpoint.check()));
  closing.signal.throwIfAborted();
  // One that lies about its chain must not stop a start beside others.
  if (endpoints.some((endpoint) => endpoint.state() === "ready")) return;
  const problems = endpoints.flatMap((endpoint) => endpoint.problem() ?? []);
  throw new RpcNotReadyError(chainId, problems);
}

async function readOnEndpoint<T>(
  context: PoolContext,
  read: (endpoint: RpcEndpointHandle) => Promise<T>,
  options: Pick<RpcRequestOptions, "minBlock" | "signal"> = {},
): Promise<T> {
  const { order, handles, closing } = context;
  closing.signal.throwIfAborted();
  const failures: EndpointProblem[] = [];
  const passOver = (problem: EndpointProblem) => failures.push(problem);
  let refusal: RpcResponseError | undefined;
  for await (const endpoint of order.candidates(options, passOver)) {
    if (endpoint === "all-tried") {
      if (refusal) break;
      continue;
    }
    const handle = handles.find((each) => each.endpoint === endpoint.name.number);
    if (!handle) break;
    try {
      return await read(handle);
    } catch (error) {
      if (error instanceof RpcUnavailableError) failures.push(...error.failures);
      else if (isNodesOwn(error)) refusal ??= error;
      else throw error;
    }
  }
  throw refusal ?? unavailableError(context.sending, "a consistent read", failures);
}

function isNodesOwn(error: unknown): error is RpcResponseError {
  const isAnswer = error instanceof RpcResponseError;
  return isAnswer && error.method !== "eth_getLogs" && !isChainsWord(error);
}
