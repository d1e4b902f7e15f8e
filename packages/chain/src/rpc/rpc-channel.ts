import type { Clock } from "../clock.ts";
import { type HttpExchangeResult, httpExchange } from "./http-exchange.ts";
import type { HttpPost } from "./http-post.ts";
import { withLinkedAbort } from "./linked-abort.ts";
import { type ChannelOutcome, failAll, readResponse, type SentCalls } from "./read-response.ts";
import { createRequestGate, type RequestGate } from "./request-gate.ts";
import { encodeCalls, type RpcCall } from "./rpc-envelope.ts";
import { type EndpointName, RpcEndpointError } from "./rpc-errors.ts";
import { isUrgentMethod } from "./rpc-methods.ts";
import type { RpcUrl } from "./rpc-url.ts";

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
  /** Called with the calls of each HTTP request that is about to be sent. */
  onRequest: (calls: readonly RpcCall[]) => void;
  onExchange: (report: ExchangeReport) => void;
  onBatchLimit: (calls: number) => void;
}

export interface RpcChannel {
  /** One outcome per call, in order. Rejects only with the reason of an abort. */
  send(calls: readonly RpcCall[], options: SendOptions): Promise<ChannelOutcome[]>;
  inFlight(): number;
}

/** The options of a channel, and its state. */
interface ChannelContext extends RpcChannelOptions {
  readonly gate: RequestGate;
  /** Most calls that the server takes in one request, as far as it has shown. */
  batchLimit: number;
  nextId: number;
}

/** JSON-RPC over HTTP with one server, within its limits. It does not judge the server's health. */
export function createRpcChannel(options: RpcChannelOptions): RpcChannel {
  const gate = createRequestGate(options);
  const context = { ...options, gate, batchLimit: options.maxBatchSize, nextId: 1 };
  return {
    send: (calls, sendOptions) => send(context, calls, sendOptions),
    inFlight: gate.inFlight,
  };
}

/** Splits calls into batches that the server takes. */
async function send(
  context: ChannelContext,
  calls: readonly RpcCall[],
  sendOptions: SendOptions,
): Promise<ChannelOutcome[]> {
  const { callsPerSecond = Number.POSITIVE_INFINITY } = context;
  const batchLimit = Math.min(context.batchLimit, Math.max(1, Math.floor(callsPerSecond)));
  // One request's own calls may take longer than the time limit of an answer. That is no lack of
  // room.
  const roomMs = sendOptions.timeoutMs + (calls.length / callsPerSecond) * 1_000;
  if (calls.length <= batchLimit) return exchange(context, calls, sendOptions, roomMs);
  const parts: Promise<ChannelOutcome[]>[] = [];
  for (let start = 0; start < calls.length; start += batchLimit)
    parts.push(exchange(context, calls.slice(start, start + batchLimit), sendOptions, roomMs));
  return (await Promise.all(parts)).flat();
}

/** One HTTP request. A refused batch is split until it fits; later batches keep that size. */
async function exchange(
  context: ChannelContext,
  calls: readonly RpcCall[],
  sendOptions: SendOptions,
  roomMs: number,
): Promise<ChannelOutcome[]> {
  const sent = { calls, firstId: context.nextId, timeoutMs: sendOptions.timeoutMs };
  context.nextId += calls.length;
  const exchanged = await post(context, sent, sendOptions, roomMs);
  // Not sent: caused by this process, and no sign of the server's health.
  if (exchanged instanceof RpcEndpointError) return failAll(calls, exchanged);

  const { startedAt, response } = exchanged;
  const read = readResponse(context, sent, response);
  if (read.kind === "batch-refused") {
    context.batchLimit = Math.min(context.batchLimit, Math.floor(calls.length / 2));
    context.onBatchLimit(context.batchLimit);
    return send(context, calls, sendOptions);
  }
  const { outcomes } = read;
  context.onExchange({ startedAt, failure: outcomes.map(failureOf).find(Boolean) });
  return outcomes;
}

/** Posts calls once there is a slot. Returns an error where they were not sent. */
function post(
  context: ChannelContext,
  { calls, firstId, timeoutMs }: SentCalls,
  { signal, mayStart }: SendOptions,
  roomMs: number,
): Promise<RpcEndpointError | { startedAt: number; response: HttpExchangeResult }> {
  const { name, url, clock, closing } = context;
  const sources = signal ? [signal, closing] : [closing];
  return withLinkedAbort(sources, async (controller) => {
    const leave = await enter(context, calls, roomMs, controller);
    if (!leave) return notSent(name, "busy", `our own limits left no room for it in ${roomMs} ms`);
    try {
      if (!mayStart()) return notSent(name, "resting", "it failed while this request was queued");
      const startedAt = clock.now();
      context.onRequest(calls);
      const response = await httpExchange({
        href: url.href,
        headers: url.headers,
        body: encodeCalls(calls, firstId),
        timeoutMs,
        maxResponseBytes: context.maxResponseBytes,
        signal: controller.signal,
        clock,
        post: context.post,
      });
      return { startedAt, response };
    } finally {
      leave();
    }
  });
}

/** Waits for a slot, at most `roomMs`. */
async function enter(
  { gate, clock }: ChannelContext,
  calls: readonly RpcCall[],
  roomMs: number,
  controller: AbortController,
): Promise<(() => void) | undefined> {
  const cancelTimer = clock.setTimer(() => controller.abort(), roomMs);
  try {
    const isUrgent = calls.some(({ method }) => isUrgentMethod(method));
    return await gate.enter(calls.length, controller.signal, { isUrgent });
  } catch {
    return undefined;
  } finally {
    cancelTimer();
  }
}

function notSent(name: EndpointName, kind: "busy" | "resting", details: string): RpcEndpointError {
  return new RpcEndpointError({ name, kind, details, maybeSent: false });
}

function failureOf(outcome: ChannelOutcome): RpcEndpointError | undefined {
  return !outcome.ok && outcome.error instanceof RpcEndpointError ? outcome.error : undefined;
}
