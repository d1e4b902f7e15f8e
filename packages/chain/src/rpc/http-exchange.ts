import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "../clock.ts";
import { type HttpPost, NotConnectedError } from "./http-post.ts";

export interface HttpExchangeOptions {
  href: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Limit of the whole exchange, the last byte of the body included. */
  timeoutMs: number;
  maxResponseBytes: number;
  /** Aborted by the caller, or by the pool that closes. */
  signal: AbortSignal;
  clock: Clock;
  post: HttpPost;
}

export type HttpExchangeResult =
  | { kind: "response"; status: number; retryAfterMs: number | undefined; text: string }
  | { kind: "timeout" }
  | { kind: "aborted" }
  | { kind: "too-large" }
  | { kind: "connection"; code: string; maybeSent: boolean };

/**
 * One HTTP POST of JSON. Never rejects. An error of `post` is reduced to its code, since its text
 * may hold the URL.
 */
export async function httpExchange(options: HttpExchangeOptions): Promise<HttpExchangeResult> {
  const { signal } = options;
  if (signal.aborted) return { kind: "aborted" };
  const controller = new AbortController();
  let timedOut = false;
  const cancelTimer = options.clock.setTimer(() => {
    timedOut = true;
    controller.abort();
  }, options.timeoutMs);
  const onAbort = () => controller.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const { href, headers, body, maxResponseBytes } = options;
    const answer = await options.post({
      href,
      headers,
      body,
      maxResponseBytes,
      signal: controller.signal,
    });
    const { status, text } = answer;
    if (text === undefined) return { kind: "too-large" };
    return { kind: "response", status, retryAfterMs: readRetryAfter(answer.headers), text };
  } catch (error) {
    if (signal.aborted) return { kind: "aborted" };
    if (timedOut) return { kind: "timeout" };
    const maybeSent = !(error instanceof NotConnectedError);
    return { kind: "connection", code: readErrorCode(error) ?? "failed", maybeSent };
  } finally {
    cancelTimer();
    signal.removeEventListener("abort", onAbort);
  }
}

function readErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("code" in error && typeof error.code === "string") return error.code;
  return readErrorCode(error.cause);
}

/**
 * RFC 9110, 10.2.3: seconds, or a date. A date is read against the server's own `Date`, so that a
 * skewed clock here changes nothing.
 */
function readRetryAfter(headers: IncomingHttpHeaders): number | undefined {
  const value = headers["retry-after"]?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  const ms = Date.parse(value) - Date.parse(headers.date ?? "");
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
