import type { Clock } from "../clock.ts";
import { type HttpExchangeResult, httpExchange } from "./http-exchange.ts";
import type { HttpPost } from "./http-post.ts";
import { withLinkedAbort } from "./linked-abort.ts";
import { createRequestGate } from "./request-gate.ts";
import {
  decodeReply,
  encodeCalls,
  type JsonRpcAnswer,
  type JsonRpcError,
  type RpcCall,
} from "./rpc-envelope.ts";
import { type EndpointName, RpcEndpointError, RpcResponseError } from "./rpc-errors.ts";
import { isRateLimit } from "./rpc-methods.ts";
import { type RpcUrl, shortenBytes } from "./rpc-url.ts";

/** Outcome of one call at one server. */
export type ChannelOutcome =
  | { ok: true; result: unknown }
  | { ok: false; error: RpcResponseError | RpcEndpointError };

export interface SendOptions {
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** Checked again when the request leaves the queue, since it may have waited for its slot. */
  mayStart: () => boolean;
}

/** One finished HTTP request. `failure` is undefined when every call was answered. */
export interface ExchangeReport {
  startedAt: number;
  failure: RpcEndpointError | undefined;
}

export interface RpcChannelOptions {
  name: EndpointName;
  url: RpcUrl;
  redact: (value: unknown) => unknown;
  clock: Clock;
  post: HttpPost;
  maxBatchSize: number;
  maxInFlight: number;
  maxResponseBytes: number;
  callsPerSecond: number | undefined;
  /** Aborted when the pool closes. */
  closing: AbortSignal;
  onExchange: (report: ExchangeReport) => void;
  onBatchLimit: (calls: number) => void;
}

export interface RpcChannel {
  /** One outcome per call, in order. Rejects only with the reason of an abort. */
  send(calls: readonly RpcCall[], options: SendOptions): Promise<ChannelOutcome[]>;
  inFlight(): number;
}

/** HTTP statuses of a server that understood the message and refused the request. */
const refusals: ReadonlySet<number> = new Set([400, 405, 413, 415, 422]);

/** JSON-RPC over HTTP with one server, within its limits. It does not judge the server's health. */
export function createRpcChannel(options: RpcChannelOptions): RpcChannel {
  const { name, clock, closing, redact } = options;
  const gate = createRequestGate(options);
  let batchLimit = options.maxBatchSize;
  let nextId = 1;

  /** Splits calls into batches that the server takes. */
  async function send(
    calls: readonly RpcCall[],
    sendOptions: SendOptions,
  ): Promise<ChannelOutcome[]> {
    // One request's own calls may take longer than the time limit of an answer. That is no lack of
    // room.
    const { callsPerSecond = Number.POSITIVE_INFINITY } = options;
    const roomMs = sendOptions.timeoutMs + (calls.length / callsPerSecond) * 1_000;
    if (calls.length <= batchLimit) return exchange(calls, sendOptions, roomMs);
    const parts: Promise<ChannelOutcome[]>[] = [];
    for (let start = 0; start < calls.length; start += batchLimit)
      parts.push(exchange(calls.slice(start, start + batchLimit), sendOptions, roomMs));
    return (await Promise.all(parts)).flat();
  }

  /** One HTTP request. A refused batch is split until it fits; later batches keep that size. */
  async function exchange(
    calls: readonly RpcCall[],
    sendOptions: SendOptions,
    roomMs: number,
  ): Promise<ChannelOutcome[]> {
    const { timeoutMs, signal, mayStart } = sendOptions;
    const firstId = nextId;
    nextId += calls.length;
    const sources = signal ? [signal, closing] : [closing];
    const exchanged = await withLinkedAbort(sources, async (controller) => {
      const leave = await enter(calls.length, roomMs, controller);
      if (!leave) return notSent("busy", `our own limits left no room for it for ${roomMs} ms`);
      try {
        if (!mayStart()) return notSent("resting", "it failed while this request waited its turn");
        const startedAt = clock.now();
        const response = await httpExchange({
          href: options.url.href,
          headers: options.url.headers,
          body: encodeCalls(calls, firstId),
          timeoutMs,
          maxResponseBytes: options.maxResponseBytes,
          signal: controller.signal,
          clock,
          post: options.post,
        });
        return { startedAt, response };
      } finally {
        leave();
      }
    });
    // Not sent: caused by this process, and no sign of the server's health.
    if (exchanged instanceof RpcEndpointError) return failAll(calls, exchanged);

    const { startedAt, response } = exchanged;
    const reading = readResponse(calls, firstId, response, timeoutMs);
    if (reading.kind === "batch-refused") {
      batchLimit = Math.min(batchLimit, Math.floor(calls.length / 2));
      options.onBatchLimit(batchLimit);
      return send(calls, sendOptions);
    }
    const { outcomes } = reading;
    options.onExchange({ startedAt, failure: outcomes.map(failureOf).find(Boolean) });
    return outcomes;
  }

  /** Waits for a slot, at most `roomMs`. */
  async function enter(calls: number, roomMs: number, controller: AbortController) {
    const cancelTimer = clock.setTimer(() => controller.abort(), roomMs);
    try {
      return await gate.enter(calls, controller.signal);
    } catch {
      return undefined;
    } finally {
      cancelTimer();
    }
  }

  function readResponse(
    calls: readonly RpcCall[],
    firstId: number,
    response: HttpExchangeResult,
    timeoutMs: number,
  ): { kind: "outcomes"; outcomes: ChannelOutcome[] } | { kind: "batch-refused" } {
    const all = (error: RpcEndpointError) =>
      ({ kind: "outcomes", outcomes: failAll(calls, error) }) as const;
    switch (response.kind) {
      case "timeout":
        return all(sent("timeout", `no complete answer within ${timeoutMs} ms`));
      case "too-large":
        return all(sent("too-large", `an answer of more than ${options.maxResponseBytes} bytes`));
      case "aborted":
        return all(sent("connection", "the request was aborted"));
      case "connection": {
        const details = `connection failed (${response.code})`;
        const { maybeSent } = response;
        return all(new RpcEndpointError({ name, kind: "connection", details, maybeSent }));
      }
      case "response":
        break;
    }
    const { status, retryAfterMs } = response;
    if (status === 429) return all(notTaken("rate-limited", "HTTP 429", retryAfterMs));
    if (status === 401 || status === 403) return all(notTaken("unauthorized", `HTTP ${status}`));
    const isOk = status >= 200 && status < 300;
    // Some servers send their JSON-RPC errors, or refuse a batch, with 4xx; there the text decides.
    if (!isOk && !refusals.has(status)) return all(sent("http", `HTTP ${status}`, retryAfterMs));

    const reply = decodeReply(response.text, calls.length, firstId);
    if (reply.kind === "answers")
      return {
        kind: "outcomes",
        outcomes: calls.map((call, index) => readAnswer(call, reply.answers[index])),
      };
    const [first] = calls;
    if (reply.kind === "batch-refused")
      return first && isRateLimit(first.method, reply.error)
        ? all(rateLimited(reply.error))
        : { kind: "batch-refused" };
    if (isOk) return all(sent("malformed", "the answer is not JSON-RPC, or not to our question"));
    return calls.length > 1 ? { kind: "batch-refused" } : all(sent("http", `HTTP ${status}`));
  }

  function readAnswer(call: RpcCall, answer: JsonRpcAnswer): ChannelOutcome {
    if (!answer) return { ok: false, error: sent("malformed", "no answer to our question") };
    if (!("error" in answer)) return { ok: true, result: answer.result };
    const { error } = answer;
    if (isRateLimit(call.method, error)) return { ok: false, error: rateLimited(error) };
    return {
      ok: false,
      error: new RpcResponseError({
        name,
        method: call.method,
        code: error.code,
        details: shortenBytes(String(redact(error.message))),
        data: redact(error.data),
      }),
    };
  }

  function rateLimited(error: JsonRpcError) {
    return notTaken("rate-limited", `JSON-RPC error ${error.code} (rate limit)`);
  }

  function notSent(kind: "busy" | "resting", details: string): RpcEndpointError {
    return new RpcEndpointError({ name, kind, details, maybeSent: false });
  }

  /** The server refused before it looked at the calls. */
  function notTaken(
    kind: "rate-limited" | "unauthorized",
    details: string,
    retryAfterMs?: number,
  ): RpcEndpointError {
    return new RpcEndpointError({ name, kind, details, retryAfterMs, maybeSent: false });
  }

  function sent(
    kind: "timeout" | "too-large" | "connection" | "http" | "malformed",
    details: string,
    retryAfterMs?: number,
  ): RpcEndpointError {
    return new RpcEndpointError({ name, kind, details, retryAfterMs, maybeSent: true });
  }

  return { send, inFlight: gate.inFlight };
}

function failAll(calls: readonly RpcCall[], error: RpcEndpointError): ChannelOutcome[] {
  return calls.map(() => ({ ok: false, error }));
}

function failureOf(outcome: ChannelOutcome): RpcEndpointError | undefined {
  return !outcome.ok && outcome.error instanceof RpcEndpointError ? outcome.error : undefined;
}
