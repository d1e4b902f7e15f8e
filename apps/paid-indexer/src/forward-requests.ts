import { ApiError } from "@coinslot/indexer";
import type { Request, RequestHandler } from "express";
import { maxAnswerBytes as defaultMaxAnswerBytes } from "./sold-routes.ts";

/** A remote API, and our access to it. */
export interface RemoteApi {
  /** Without a path, such as `https://indexer.example.com`. */
  url: string;
  /** Sent as `x-api-key`, to this API alone. */
  apiKey: string;
}

export interface ForwardOptions extends RemoteApi {
  /** Timeout of a whole answer. Default 20 s. */
  timeoutMs?: number;
  /** The longest accepted answer. Default: the bound of the payment middleware. */
  maxAnswerBytes?: number;
}

/**
 * Headers for the buyer. All others concern us and the API: limits of our key, cookies,
 * connections.
 */
const passedHeaders = ["cache-control", "content-type", "link", "retry-after"];

/**
 * Forwards a request to a remote API, with our key, and returns its answer. That is success, and
 * errors that are the buyer's (4xx) or temporary (429, 5xx). A request has its query, and its body
 * as it was counted, in JSON. The rest of the buyer's request stays here.
 *
 * Without an answer that a buyer could use, it throws an `ApiError`. That is 503 when the API is
 * unreachable, 502 when another server answers, or our key is no longer valid.
 */
export function forwardTo(options: ForwardOptions): RequestHandler {
  const { url, apiKey, timeoutMs = 20_000, maxAnswerBytes = defaultMaxAnswerBytes } = options;

  return async function forward(request, response): Promise<void> {
    const left = new AbortController();
    response.once("close", () => left.abort());
    const signal = AbortSignal.any([left.signal, AbortSignal.timeout(timeoutMs)]);

    const answer = await ask(`${url}${targetOf(request)}`, {
      method: request.method === "POST" ? "POST" : "GET",
      headers: headersFor(request, apiKey),
      body: request.method === "POST" ? JSON.stringify(request.body) : null,
      // Our key goes to the API alone, never to the target of a redirect.
      redirect: "manual",
      signal,
    });
    const { status } = answer;
    if (status === 401 || status === 403) throw keyRefused(status);
    if (status < 200 || (status >= 300 && status < 400)) throw notTheApi(`status ${status}`);
    const body = await readBody(answer, maxAnswerBytes);
    if (body.includes(apiKey)) throw notTheApi("the answer repeats the key of this service");

    response.status(status);
    for (const name of passedHeaders) {
      const value = answer.headers.get(name);
      if (value !== null) response.setHeader(name, value);
    }
    response.end(body);
  };
}

/** The API refuses our key. The buyer neither caused it nor can mend it. */
export function keyRefused(status: number): ApiError {
  const cause = new Error(`The indexing service refuses INDEXER_API_KEY with status ${status}.`);
  return new ApiError(502, "The source of the data refuses this service.", { cause });
}

/** No answer, or not in time. */
export function unreachable(cause: unknown): ApiError {
  const message = "The source of the data does not answer.";
  return new ApiError(503, message, { retryAfterSeconds: 1, cause });
}

function notTheApi(reason: string): ApiError {
  const cause = new Error(`The indexing service gave no answer of its own: ${reason}.`);
  return new ApiError(502, "The source of the data gave no answer that could be used.", { cause });
}

/**
 * The path as Express read it for the price, normalised, and the query. No name of a chain, a token
 * or an address has a slash in it, or means the parent folder. Another server might read such a
 * name as another path.
 */
function targetOf({ path, originalUrl }: Request): string {
  const names = path.split("/").map(decodeURIComponent);
  if (names.some((name) => /^\.{1,2}$|[/\\]/.test(name))) {
    throw new ApiError(400, "The path holds an invalid name.");
  }
  return names.map(encodeURIComponent).join("/") + new URL(originalUrl, "http://localhost").search;
}

function headersFor({ method }: Request, apiKey: string): Record<string, string> {
  return {
    accept: "application/json",
    "x-api-key": apiKey,
    // The body is serialised again, in any form on arrival.
    ...(method === "POST" && { "content-type": "application/json" }),
  };
}

async function ask(target: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(target, init);
  } catch (cause) {
    throw unreachable(cause);
  }
}

async function readBody(answer: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of answer.body ?? []) {
      size += chunk.length;
      if (size > maxBytes) break;
      chunks.push(chunk);
    }
  } catch (cause) {
    throw unreachable(cause);
  }
  if (size > maxBytes) throw notTheApi(`more than ${maxBytes} bytes`);
  return Buffer.concat(chunks);
}
