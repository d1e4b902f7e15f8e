import { createCircuitBreaker } from "./circuit-breaker.ts";
import type { Clock } from "./clock.ts";
import { type Fetch, type HttpExchangeResult, httpExchange } from "./http-exchange.ts";
import { createRequestGate } from "./request-gate.ts";
import {
  decodeReply,
  encodeCalls,
  type JsonRpcAnswer,
  type JsonRpcError,
  type RpcCall,
} from "./rpc-envelope.ts";
import {
  type EndpointFailureKind,
  type EndpointProblem,
  RpcEndpointError,
  RpcResponseError,
  RpcWrongChainError,
} from "./rpc-errors.ts";
import { isRateLimit, reportedChainId, reportedHead } from "./rpc-methods.ts";
import type { RpcUrl } from "./rpc-url.ts";

/** What one endpoint made of one call. */
export type EndpointOutcome =
  | { ok: true; result: unknown }
  | { ok: false; error: RpcResponseError | RpcEndpointError };

/**
 * - `unchecked`: its chain id is not known yet, or it comes back from a rest.
 * - `ready`: it serves our chain, and answers.
 * - `resting`: it failed, or asked us to stay away, and is left alone for a while.
 * - `wrong-chain`: it serves another chain, and is never used.
 */
export type EndpointState = "unchecked" | "ready" | "resting" | "wrong-chain";

export type EndpointEvent =
  | { type: "endpoint-failed"; endpoint: number; kind: EndpointFailureKind; message: string }
  | { type: "endpoint-resting"; endpoint: number; restMs: number }
  | { type: "endpoint-recovered"; endpoint: number }
  | { type: "endpoint-wrong-chain"; endpoint: number; chainId: number }
  | { type: "endpoint-batch-limit"; endpoint: number; calls: number };

export interface SendOptions {
  timeoutMs: number;
  signal: AbortSignal | undefined;
}

export interface RpcEndpoint {
  /** Counted from 1. */
  readonly number: number;
  state(): EndpointState;
  /** Whether it has failed before and waits for a trial that succeeds. */
  onTrial(): boolean;
  restMs(): number;
  /** Finds out the chain id, which also ends or prolongs a rest. Never rejects: `state()` tells. */
  check(): Promise<void>;
  /** One outcome per call, in order. Rejects only with the reason of an abort. */
  send(calls: readonly RpcCall[], options: SendOptions): Promise<EndpointOutcome[]>;
  /** The highest block that it last claimed to have. */
  head(): bigint | undefined;
  latencyMs(): number | undefined;
  inFlight(): number;
  problem(): EndpointProblem | undefined;
  fail(kind: EndpointFailureKind, details: string): RpcEndpointError;
}

export interface RpcEndpointOptions {
  number: number;
  count: number;
  chainId: number;
  url: RpcUrl;
  redact: (value: unknown) => unknown;
  clock: Clock;
  fetch: Fetch;
  timeoutMs: number;
  maxBatchSize: number;
  maxInFlight: number;
  maxResponseBytes: number;
  callsPerSecond: number | undefined;
  failureThreshold: number;
  restMs: number;
  maxRestMs: number;
  /** Aborted when the pool closes. */
  closing: AbortSignal;
  emit: (event: EndpointEvent) => void;
}

/** A trial must not keep callers waiting as long as a heavy read may. */
const CHECK_TIMEOUT_MS = 3_000;
/** HTTP statuses of a server that understood us and did not like the request. */
const REFUSALS: ReadonlySet<number> = new Set([400, 405, 413, 415, 422]);
/** A server that asks for more than this is asked again all the same. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;

/** One RPC server: its connection, limits, circuit breaker, chain id and head. */
export function createRpcEndpoint(options: RpcEndpointOptions): RpcEndpoint {
  const { number, clock, emit, redact } = options;
  const label = `endpoint ${number} of ${options.count}`;
  const gate = createRequestGate(options);
  const breaker = createCircuitBreaker({
    ...options,
    threshold: options.failureThreshold,
    onChange(state) {
      // Whoever answers after an outage may be somebody else: the chain id is asked again.
      verified = false;
      if (state === "open")
        emit({ type: "endpoint-resting", endpoint: number, restMs: breaker.restMs() });
      else emit({ type: "endpoint-recovered", endpoint: number });
    },
  });
  let verified = false;
  let checking: Promise<void> | undefined;
  let wrongChain: RpcWrongChainError | undefined;
  let lastFailure: RpcEndpointError | undefined;
  let head: bigint | undefined;
  let latencyMs: number | undefined;
  let batchLimit = options.maxBatchSize;
  let nextId = 1;

  function state(): EndpointState {
    if (wrongChain) return "wrong-chain";
    if (breaker.state() === "open") return "resting";
    return verified && breaker.state() === "closed" ? "ready" : "unchecked";
  }

  function fail(
    kind: EndpointFailureKind,
    details: string,
    maybeSent = false,
    retryAfterMs?: number,
  ): RpcEndpointError {
    return new RpcEndpointError({
      kind,
      endpoint: number,
      label,
      details,
      maybeSent,
      retryAfterMs,
    });
  }

  function record(error: RpcEndpointError, startedAt: number): RpcEndpointError {
    lastFailure = error;
    emit({ type: "endpoint-failed", endpoint: number, kind: error.kind, message: error.message });
    // Our own limits are no fault of the endpoint.
    if (error.kind === "busy") return error;
    // It rests at once where it asked for it, and where this was its trial; else after a few failures.
    const atOnce =
      !verified ||
      error.retryAfterMs !== undefined ||
      error.kind === "rate-limited" ||
      error.kind === "unauthorized";
    const askedMs = Math.min(error.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS);
    breaker.failed(startedAt, atOnce ? askedMs : undefined);
    return error;
  }

  function failureOf(
    exchange: HttpExchangeResult,
    timeoutMs: number,
  ): RpcEndpointError | undefined {
    switch (exchange.kind) {
      case "timeout":
        return fail("timeout", `no complete answer within ${timeoutMs} ms`, true);
      case "too-large":
        return fail("too-large", `an answer of more than ${options.maxResponseBytes} bytes`, true);
      case "connection":
        return fail("connection", `connection failed (${exchange.code})`, exchange.maybeSent);
      case "aborted":
        return fail("connection", "the request was aborted", true);
      case "response": {
        const { status } = exchange;
        const text = `HTTP ${status}`;
        if (status === 429) return fail("rate-limited", text, false, exchange.retryAfterMs);
        if (status === 401 || status === 403) return fail("unauthorized", text);
        // Some servers send their JSON-RPC errors, or refuse a batch, with these; the text decides.
        if ((status >= 200 && status < 300) || REFUSALS.has(status)) return undefined;
        return fail("http", text, true, exchange.retryAfterMs);
      }
    }
  }

  function responseError(call: RpcCall, error: JsonRpcError): RpcResponseError {
    return new RpcResponseError({
      method: call.method,
      code: error.code,
      details: String(redact(error.message)),
      data: redact(error.data),
      endpoint: number,
      label,
    });
  }

  function rateLimited(error: JsonRpcError): RpcEndpointError {
    return fail("rate-limited", `JSON-RPC error ${error.code} (rate limit)`);
  }

  function outcomeOf(call: RpcCall, answer: JsonRpcAnswer): EndpointOutcome {
    if (!answer) return { ok: false, error: fail("malformed", "no answer with our id", true) };
    if ("error" in answer) {
      const limited = isRateLimit(call.method, answer.error);
      return {
        ok: false,
        error: limited ? rateLimited(answer.error) : responseError(call, answer.error),
      };
    }
    const reported = reportedHead(call, answer.result);
    if (reported !== undefined) head = reported;
    return { ok: true, result: answer.result };
  }

  function succeed(startedAt: number) {
    const tookMs = clock.now() - startedAt;
    latencyMs = latencyMs === undefined ? tookMs : latencyMs + (tookMs - latencyMs) / 8;
    breaker.succeeded(startedAt);
  }

  function limitBatches(calls: number) {
    if (calls >= batchLimit) return;
    batchLimit = calls;
    emit({ type: "endpoint-batch-limit", endpoint: number, calls });
  }

  /** One HTTP request. A refused batch is split, here and from now on, until it fits. */
  async function exchange(
    calls: readonly RpcCall[],
    { timeoutMs, signal }: SendOptions,
  ): Promise<EndpointOutcome[]> {
    const all = (error: RpcEndpointError): EndpointOutcome[] =>
      calls.map(() => ({ ok: false, error }));
    const abort = new AbortController();
    const onAbort = () => abort.abort();
    const sources = signal ? [signal, options.closing] : [options.closing];
    for (const source of sources) {
      if (source.aborted) throw source.reason;
      source.addEventListener("abort", onAbort, { once: true });
    }
    let leave: (() => void) | undefined;
    try {
      const cancelTimer = clock.setTimer(onAbort, timeoutMs);
      leave = await gate.enter(calls.length, abort.signal).catch(() => undefined);
      cancelTimer();
      for (const source of sources) source.throwIfAborted();
      if (!leave) return all(fail("busy", `its request limit left no room for ${timeoutMs} ms`));

      const startedAt = clock.now();
      const firstId = nextId;
      nextId += calls.length;
      const response = await httpExchange({
        ...options.url,
        body: encodeCalls(calls, firstId),
        timeoutMs,
        maxResponseBytes: options.maxResponseBytes,
        signal: abort.signal,
        clock,
        fetch: options.fetch,
      });
      for (const source of sources) source.throwIfAborted();
      const failure = failureOf(response, timeoutMs);
      if (failure) return all(record(failure, startedAt));
      if (response.kind !== "response") return all(fail("connection", "no response"));

      const reply = decodeReply(response.text, calls.length, firstId);
      const [first] = calls;
      if (reply.kind === "batch-refused" && first && isRateLimit(first.method, reply.error))
        return all(record(rateLimited(reply.error), startedAt));
      const refused = reply.kind === "batch-refused" || REFUSALS.has(response.status);
      if (refused && calls.length > 1 && reply.kind !== "answers") {
        leave();
        leave = undefined;
        limitBatches(Math.floor(calls.length / 2));
        return await send(calls, { timeoutMs, signal });
      }
      if (reply.kind !== "answers") {
        const ok = response.status >= 200 && response.status < 300;
        const details = ok ? "the answer is not JSON-RPC" : `HTTP ${response.status}`;
        return all(record(fail(ok ? "malformed" : "http", details, true), startedAt));
      }
      const outcomes = calls.map((call, index) => outcomeOf(call, reply.answers[index]));
      // However many answers of a batch are missing, it is one failure.
      const failed = outcomes.flatMap((outcome) =>
        !outcome.ok && outcome.error instanceof RpcEndpointError ? [outcome.error] : [],
      )[0];
      if (failed) record(failed, startedAt);
      else succeed(startedAt);
      return outcomes;
    } finally {
      leave?.();
      for (const source of sources) source.removeEventListener("abort", onAbort);
    }
  }

  async function send(
    calls: readonly RpcCall[],
    sendOptions: SendOptions,
  ): Promise<EndpointOutcome[]> {
    if (calls.length <= batchLimit) return exchange(calls, sendOptions);
    const parts: Promise<EndpointOutcome[]>[] = [];
    for (let start = 0; start < calls.length; start += batchLimit)
      parts.push(exchange(calls.slice(start, start + batchLimit), sendOptions));
    return (await Promise.all(parts)).flat();
  }

  async function findOutChain(): Promise<void> {
    const timeoutMs = Math.min(options.timeoutMs, CHECK_TIMEOUT_MS);
    const call = { method: "eth_chainId" };
    const [outcome] = await exchange([call], { timeoutMs, signal: undefined }).catch(() => []);
    if (!outcome) return;
    if (!outcome.ok) {
      // An error is an answer, but one that tells no chain is not good enough.
      if (outcome.error instanceof RpcResponseError)
        record(fail("malformed", `eth_chainId got error ${outcome.error.code}`), clock.now());
      return;
    }
    const actual = reportedChainId(outcome.result);
    if (actual === undefined) {
      record(fail("malformed", "the chain id is not a number"), clock.now());
    } else if (actual === options.chainId) {
      verified = true;
    } else {
      wrongChain = new RpcWrongChainError({
        endpoint: number,
        label,
        expected: options.chainId,
        actual,
      });
      emit({ type: "endpoint-wrong-chain", endpoint: number, chainId: actual });
    }
  }

  return {
    number,
    state,
    onTrial: () => breaker.state() === "half-open",
    restMs: breaker.restMs,
    check() {
      if (state() !== "unchecked") return Promise.resolve();
      checking ??= findOutChain().finally(() => {
        checking = undefined;
      });
      return checking;
    },
    send,
    head: () => head,
    latencyMs: () => latencyMs,
    inFlight: gate.inFlight,
    problem: () => wrongChain ?? lastFailure,
    fail,
  };
}
