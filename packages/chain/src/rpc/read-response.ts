import type { HttpExchangeResult } from "./http-exchange.ts";
import {
  decodeReply,
  type JsonRpcAnswer,
  type JsonRpcError,
  type RpcCall,
} from "./rpc-envelope.ts";
import { type EndpointName, RpcEndpointError, RpcResponseError } from "./rpc-errors.ts";
import { isRateLimit } from "./rpc-methods.ts";
import { shortenBytes } from "./rpc-url.ts";

/** Outcome of one call at one server. */
export type ChannelOutcome =
  | { ok: true; result: unknown }
  | { ok: false; error: RpcResponseError | RpcEndpointError };

/** Content of a server's response to one HTTP request. */
export type ReadResponse =
  | { kind: "outcomes"; outcomes: ChannelOutcome[] }
  /** The server takes fewer calls at a time. */
  | { kind: "batch-refused" };

/** The server, and how its texts are read. */
export interface ResponseContext {
  name: EndpointName;
  redact: (value: unknown) => unknown;
  maxResponseBytes: number;
}

/** The calls of one HTTP request, and its time limit. */
export interface SentCalls {
  calls: readonly RpcCall[];
  firstId: number;
  timeoutMs: number;
}

/** HTTP statuses of a server that understood the message and refused the request. */
const refusals: ReadonlySet<number> = new Set([400, 405, 413, 415, 422]);

/** Reads a server's response: one outcome per call, in order, or a refusal of the batch. */
export function readResponse(
  context: ResponseContext,
  { calls, firstId, timeoutMs }: SentCalls,
  response: HttpExchangeResult,
): ReadResponse {
  const { name } = context;
  switch (response.kind) {
    case "timeout":
      return all(calls, sent(name, "timeout", `no complete answer within ${timeoutMs} ms`));
    case "too-large": {
      const details = `an answer of more than ${context.maxResponseBytes} bytes`;
      return all(calls, sent(name, "too-large", details));
    }
    case "aborted":
      return all(calls, sent(name, "connection", "the request was aborted"));
    case "connection": {
      const details = `connection failed (${response.code})`;
      const { maybeSent } = response;
      return all(calls, new RpcEndpointError({ name, kind: "connection", details, maybeSent }));
    }
    case "response":
      break;
  }
  const { status, retryAfterMs } = response;
  if (status === 429) return all(calls, notTaken(name, "rate-limited", "HTTP 429", retryAfterMs));
  if (status === 401 || status === 403)
    return all(calls, notTaken(name, "unauthorized", `HTTP ${status}`));
  const isOk = status >= 200 && status < 300;
  // Some servers send their JSON-RPC errors, or refuse a batch, with 4xx; there the text decides.
  if (!isOk && !refusals.has(status))
    return all(calls, sent(name, "http", `HTTP ${status}`, retryAfterMs));

  const reply = decodeReply(response.text, calls.length, firstId);
  if (reply.kind === "answers") {
    const outcomes = calls.map((call, index) => readAnswer(context, call, reply.answers[index]));
    return { kind: "outcomes", outcomes };
  }
  const [first] = calls;
  if (reply.kind === "batch-refused")
    return first && isRateLimit(first.method, reply.error)
      ? all(calls, rateLimited(name, reply.error))
      : { kind: "batch-refused" };
  if (isOk)
    return all(
      calls,
      sent(name, "malformed", "the answer is not JSON-RPC, or for another request"),
    );
  return calls.length > 1
    ? { kind: "batch-refused" }
    : all(calls, sent(name, "http", `HTTP ${status}`));
}

/** The same failure for each of the calls. */
export function failAll(calls: readonly RpcCall[], error: RpcEndpointError): ChannelOutcome[] {
  return calls.map(() => ({ ok: false, error }));
}

function all(calls: readonly RpcCall[], error: RpcEndpointError): ReadResponse {
  return { kind: "outcomes", outcomes: failAll(calls, error) };
}

function readAnswer(
  { name, redact }: ResponseContext,
  call: RpcCall,
  answer: JsonRpcAnswer,
): ChannelOutcome {
  if (!answer) return { ok: false, error: sent(name, "malformed", "no answer to this request") };
  if (!("error" in answer)) return { ok: true, result: answer.result };
  const { error } = answer;
  if (isRateLimit(call.method, error)) return { ok: false, error: rateLimited(name, error) };
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

function rateLimited(name: EndpointName, error: JsonRpcError): RpcEndpointError {
  return notTaken(name, "rate-limited", `JSON-RPC error ${error.code} (rate limit)`);
}

/** The server refused before it read the calls. */
function notTaken(
  name: EndpointName,
  kind: "rate-limited" | "unauthorized",
  details: string,
  retryAfterMs?: number,
): RpcEndpointError {
  return new RpcEndpointError({ name, kind, details, retryAfterMs, maybeSent: false });
}

function sent(
  name: EndpointName,
  kind: "timeout" | "too-large" | "connection" | "http" | "malformed",
  details: string,
  retryAfterMs?: number,
): RpcEndpointError {
  return new RpcEndpointError({ name, kind, details, retryAfterMs, maybeSent: true });
}
