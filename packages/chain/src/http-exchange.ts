import type { Clock } from "./clock.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface HttpExchangeOptions {
  href: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Covers the whole exchange, the last byte of the body included. */
  timeoutMs: number;
  maxResponseBytes: number;
  /** Aborted by the caller, or by the pool that closes. */
  signal: AbortSignal;
  clock: Clock;
  fetch: Fetch;
}

export type HttpExchangeResult =
  | { kind: "response"; status: number; retryAfterMs: number | undefined; text: string }
  | { kind: "timeout" }
  | { kind: "aborted" }
  | { kind: "too-large" }
  | { kind: "connection"; code: string; maybeSent: boolean };

/** One HTTP POST of JSON. Never rejects; what `fetch` threw is reduced to its code, for its text may hold the URL. */
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
    const response = await options.fetch(options.href, {
      method: "POST",
      headers: { "content-type": "application/json", ...options.headers },
      body: options.body,
      // A redirect would carry the request, and a key in its headers, to somebody else.
      redirect: "manual",
      signal: controller.signal,
    });
    const text = await readText(response, options.maxResponseBytes);
    if (text === undefined) return { kind: "too-large" };
    return {
      kind: "response",
      status: response.status,
      retryAfterMs: readRetryAfter(response),
      text,
    };
  } catch (error) {
    if (signal.aborted) return { kind: "aborted" };
    if (timedOut) return { kind: "timeout" };
    const code = readErrorCode(error);
    return { kind: "connection", code: code ?? "failed", maybeSent: !NEVER_SENT.test(code ?? "") };
  } finally {
    cancelTimer();
    signal.removeEventListener("abort", onAbort);
  }
}

/** Failures to connect: name resolution, refused, no route, TLS. After these nothing was written. */
const NEVER_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

function readErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("code" in error && typeof error.code === "string") return error.code;
  return readErrorCode(error.cause);
}

async function readText(response: Response, maxBytes: number): Promise<string | undefined> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let bytes = 0;
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/**
 * RFC 9110, 10.2.3: seconds, or a date. A date is read against the server's own `Date`, so that a
 * skewed clock here changes nothing.
 */
function readRetryAfter(response: Response): number | undefined {
  const value = response.headers.get("retry-after")?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  const ms = Date.parse(value) - Date.parse(response.headers.get("date") ?? "");
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
