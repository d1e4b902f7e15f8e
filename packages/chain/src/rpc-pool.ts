import { type Clock, sleep, systemClock } from "./clock.ts";
import type { Fetch } from "./http-exchange.ts";
import {
  createRpcEndpoint,
  type EndpointEvent,
  type EndpointState,
  type RpcEndpoint,
} from "./rpc-endpoint.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import {
  type EndpointFailureKind,
  type EndpointProblem,
  RpcClosedError,
  RpcEndpointError,
  RpcNotReadyError,
  RpcResponseError,
  RpcUnavailableError,
} from "./rpc-errors.ts";
import { isRepeatable } from "./rpc-methods.ts";
import { createRedactor, parseRpcUrls } from "./rpc-url.ts";

export interface RpcPoolOptions {
  chainId: number;
  /** In order of preference, http or https. Keys in them never reach an error, event or status. */
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
  fetch?: Fetch;
}

/** What an operator may want to log or count. */
export type RpcPoolEvent = EndpointEvent;

export interface RpcRequestOptions {
  /** Ask only endpoints that claim to have this block. */
  minBlock?: bigint;
  timeoutMs?: number;
  /** When aborted, the request rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** The outcome of one call of `requestMany`. */
export type RpcOutcome =
  | { ok: true; result: unknown; endpoint: number; failures: readonly RpcEndpointError[] }
  | {
      ok: false;
      error: RpcResponseError | RpcUnavailableError;
      /** What endpoints did before this outcome. */
      failures: readonly RpcEndpointError[];
    };

/** What asks: a whole pool, or one endpoint of it. */
export interface RpcRequester {
  readonly chainId: number;
  /**
   * The `result` of one call, to be parsed by the caller.
   * Throws `RpcResponseError` when a node answered with an error, `RpcUnavailableError` when none
   * answered, `RpcClosedError` after `close()`.
   */
  request(call: RpcCall, options?: RpcRequestOptions): Promise<unknown>;
  /**
   * Many calls as one JSON-RPC batch in one HTTP request where the server allows it. One outcome per
   * call, in order; a failing call does not touch its neighbours.
   */
  requestMany(calls: readonly RpcCall[], options?: RpcRequestOptions): Promise<RpcOutcome[]>;
}

/** One endpoint, for reads that must see one and the same chain. */
export interface RpcEndpointHandle extends RpcRequester {
  /** Counted from 1, as in messages. */
  readonly endpoint: number;
  /** The block that it last called its head; undefined before it was asked. */
  head(): bigint | undefined;
}

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
  /** Asks every endpoint for its head, and moves those that lag to the end of the order. */
  compareHeads(): Promise<void>;
  status(): RpcEndpointStatus[];
  /** Aborts what is in flight, and refuses what comes after. */
  close(): void;
}

const RETRY_PAUSE_MS = 100;

/**
 * JSON-RPC over HTTP to one chain through several endpoints, the first that is well being used.
 *
 * An endpoint's chain id is checked before its first use and after every rest. Reads move to the
 * next endpoint when one fails, and go round again while `patienceMs` lasts; an error that a node
 * answers with is an answer, and is not retried. A call with effects (`isRepeatable` says which)
 * moves on only when it is certain that no node has seen it.
 */
export function createRpcPool(options: RpcPoolOptions): RpcPool {
  const { chainId, timeoutMs = 10_000, patienceMs = 2_000, clock = systemClock } = options;
  const { maxLagBlocks = 5, headCheckMs = 15_000 } = options;
  const urls = parseRpcUrls(options.rpcUrls);
  const closing = new AbortController();
  const redact = createRedactor(urls);
  const all = urls.map((url, index) =>
    createRpcEndpoint({
      number: index + 1,
      count: urls.length,
      chainId,
      url,
      redact,
      clock,
      fetch: options.fetch ?? fetch,
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
  let lagging: ReadonlySet<RpcEndpoint> = new Set();
  let headsComparedAt = clock.now();

  function emit(event: RpcPoolEvent) {
    try {
      options.onEvent?.(event);
    } catch {
      // Whoever listens must not be able to fail a request.
    }
  }

  function inOrder(): RpcEndpoint[] {
    return [...all.filter((each) => !lagging.has(each)), ...lagging];
  }

  /** Why the endpoint cannot be used for this request now; undefined: it can. */
  async function obstacle(
    endpoint: RpcEndpoint,
    { minBlock, signal }: RpcRequestOptions,
  ): Promise<EndpointProblem | undefined> {
    if (endpoint.state() === "unchecked") await endpoint.check();
    closing.signal.throwIfAborted();
    signal?.throwIfAborted();
    if (endpoint.state() !== "ready")
      return endpoint.problem() ?? endpoint.fail("connection", "not checked yet");
    if (minBlock === undefined) return undefined;
    if ((endpoint.head() ?? -1n) < minBlock)
      await endpoint.send([{ method: "eth_blockNumber" }], { timeoutMs, signal });
    const head = endpoint.head();
    if (head !== undefined && head >= minBlock) return undefined;
    return endpoint.fail("behind", `has block ${head ?? "unknown"}, asked for block ${minBlock}`);
  }

  /** The endpoints worth a try, the best first, over and over while patience lasts. */
  async function* candidates(
    requestOptions: RpcRequestOptions,
    passOver: (problem: EndpointProblem) => void,
  ): AsyncGenerator<RpcEndpoint, void, void> {
    const deadline = clock.now() + patienceMs;
    compareHeadsNowAndThen();
    for (;;) {
      const onTrial: RpcEndpoint[] = [];
      for (const endpoint of inOrder()) {
        if (endpoint.onTrial()) {
          // Its trial runs beside, so that nobody waits for it while others are well.
          void endpoint.check();
          onTrial.push(endpoint);
          continue;
        }
        const problem = await obstacle(endpoint, requestOptions);
        if (problem) passOver(problem);
        else yield endpoint;
      }
      for (const endpoint of onTrial) {
        const problem = await obstacle(endpoint, requestOptions);
        if (problem) passOver(problem);
        else yield endpoint;
      }
      const pauseMs = Math.max(RETRY_PAUSE_MS, soonestMs());
      if (clock.now() + pauseMs > deadline) return;
      await sleep(clock, pauseMs, requestOptions.signal);
      closing.signal.throwIfAborted();
    }
  }

  /** The time until an endpoint may be used again; infinite when all serve another chain. */
  function soonestMs(): number {
    const usable = all.filter((endpoint) => endpoint.state() !== "wrong-chain");
    return Math.min(...usable.map((endpoint) => endpoint.restMs()));
  }

  function unavailable(subject: string, failures: readonly EndpointProblem[]) {
    const soonest = soonestMs();
    const retryAfterMs = Number.isFinite(soonest) ? Math.ceil(soonest) : 0;
    return new RpcUnavailableError({ chainId, subject, failures, retryAfterMs });
  }

  /** Asks one endpoint after the other, with whatever has no answer yet. */
  async function ask(
    calls: readonly RpcCall[],
    requestOptions: RpcRequestOptions,
    endpoints: (passOver: (problem: EndpointProblem) => void) => AsyncIterable<RpcEndpoint>,
  ): Promise<RpcOutcome[]> {
    closing.signal.throwIfAborted();
    const { signal } = requestOptions;
    const outcomes = new Map<number, RpcOutcome>();
    const passedOver: EndpointProblem[] = [];
    let pending = calls.map((call, index) => ({ call, index, failures: [] as RpcEndpointError[] }));
    const sendOptions = { timeoutMs: requestOptions.timeoutMs ?? timeoutMs, signal };
    if (pending.length > 0)
      for await (const endpoint of endpoints((problem) => passedOver.push(problem))) {
        const asked = pending;
        const answers = await endpoint.send(
          asked.map(({ call }) => call),
          sendOptions,
        );
        pending = [];
        for (const [position, item] of asked.entries()) {
          const answer = answers[position];
          const { call, index, failures } = item;
          if (!answer) pending.push(item);
          else if (answer.ok)
            outcomes.set(index, { ...answer, endpoint: endpoint.number, failures });
          else if (answer.error instanceof RpcResponseError)
            outcomes.set(index, { ok: false, error: answer.error, failures });
          else {
            failures.push(answer.error);
            if (isRepeatable(call.method) || !answer.error.maybeSent) pending.push(item);
            else
              outcomes.set(index, {
                ok: false,
                error: unavailable(call.method, failures),
                failures,
              });
          }
        }
        if (pending.length === 0) break;
      }
    return calls.map((call, index) => {
      const failures = pending.find((item) => item.index === index)?.failures ?? [];
      const error = () => unavailable(call.method, [...passedOver, ...failures]);
      return outcomes.get(index) ?? { ok: false, error: error(), failures };
    });
  }

  function requester(
    endpoints: (
      requestOptions: RpcRequestOptions,
      passOver: (problem: EndpointProblem) => void,
    ) => AsyncIterable<RpcEndpoint>,
  ): RpcRequester {
    function requestMany(calls: readonly RpcCall[], requestOptions: RpcRequestOptions = {}) {
      return ask(calls, requestOptions, (passOver) => endpoints(requestOptions, passOver));
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

  const handles = all.map((endpoint): RpcEndpointHandle => {
    async function* alone(
      requestOptions: RpcRequestOptions,
      passOver: (problem: EndpointProblem) => void,
    ) {
      const problem = await obstacle(endpoint, requestOptions);
      if (problem) passOver(problem);
      else yield endpoint;
    }
    return { endpoint: endpoint.number, head: endpoint.head, ...requester(alone) };
  });

  async function compareHeads(): Promise<void> {
    headsComparedAt = clock.now();
    const heads = await Promise.all(
      handles.map(async (handle, index) => {
        const [outcome] = await handle.requestMany([{ method: "eth_blockNumber" }]);
        return { endpoint: all[index], head: outcome?.ok ? handle.head() : undefined };
      }),
    );
    const best = heads.reduce((max, { head = 0n }) => (head > max ? head : max), 0n);
    lagging = new Set(
      heads.flatMap(({ endpoint, head }) =>
        endpoint && head !== undefined && best - head > BigInt(maxLagBlocks) ? [endpoint] : [],
      ),
    );
  }

  function compareHeadsNowAndThen() {
    if (all.length === 1 || clock.now() - headsComparedAt < headCheckMs) return;
    // It rejects only when the pool closes.
    compareHeads().catch(() => undefined);
  }

  return {
    ...requester(candidates),
    endpoints: handles,
    compareHeads,
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
      for await (const endpoint of candidates(requestOptions, (problem) =>
        failures.push(problem),
      )) {
        const handle = handles[endpoint.number - 1];
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
          endpoint: endpoint.number,
          state: endpoint.state(),
          head: endpoint.head(),
          lagging: lagging.has(endpoint),
          latencyMs: endpoint.latencyMs(),
          inFlight: endpoint.inFlight(),
          restMs: endpoint.restMs(),
          lastFailure:
            problem instanceof RpcEndpointError ? problem.kind : problem && "wrong-chain",
        };
      });
    },
    close() {
      if (!closing.signal.aborted) closing.abort(new RpcClosedError(chainId));
    },
  };
}
