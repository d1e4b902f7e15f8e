import { createHash } from "node:crypto";
import { PaymentError } from "../payment-error.ts";

/** A request that can be sent more than once. */
export interface RepeatableRequest {
  method: string;
  url: URL;
  headers: Headers;
  /** The body to send; `overlong` if it was too long to keep, and can be sent once. */
  body: { bytes: Uint8Array<ArrayBuffer> } | { overlong: ReadableStream<Uint8Array> } | undefined;
  signal: AbortSignal | undefined;
  /** The caller's other options of `fetch`. */
  init: RequestInit;
}

/**
 * Reads the arguments of `fetch` into a form that can be sent again. A body is read up to the
 * bound, into memory, before anything is sent. A longer one is streamed, unless it has to be paid
 * for.
 *
 * @throws TypeError where `fetch` would.
 */
export async function readRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
  maxBodyBytes: number,
): Promise<RepeatableRequest> {
  const url = new URL(input instanceof Request ? input.url : input);
  if (url.username !== "" || url.password !== "") {
    // As `fetch` does, but without repeating the credentials.
    throw new TypeError("A URL that includes credentials cannot be fetched");
  }
  const request = new Request(input, init);
  const { cache, credentials, integrity, keepalive, mode, redirect } = request;
  const { referrer, referrerPolicy } = request;
  const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
  signal?.throwIfAborted();
  const { body: _body, ...rest } = init ?? {};
  return {
    method: request.method,
    url,
    headers: request.headers,
    body: request.body ? await readBody(request.body, maxBodyBytes, signal) : undefined,
    signal,
    init: {
      ...rest,
      ...{ cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy },
    },
  };
}

/** The arguments that make `fetch` send the request as it is. Consumes an overlong body. */
export function toInit(request: RepeatableRequest): RequestInit {
  const { method, headers, body, signal, init } = request;
  const whole: RequestInit = { ...init, method, headers };
  if (signal) whole.signal = signal;
  if (body === undefined) return whole;
  // Not the bytes themselves: Node's fetch hands their buffer over and cannot follow a redirect
  // then.
  if ("bytes" in body) return { ...whole, body: new Blob([body.bytes]) };
  return { ...whole, body: body.overlong, duplex: "half" };
}

/**
 * Makes sure that the body can be sent again.
 *
 * @throws PaymentError `body_too_large`
 */
export function checkRepeatable(request: RepeatableRequest, maxBodyBytes: number): void {
  if (request.body === undefined || "bytes" in request.body) return;
  throw new PaymentError(
    "body_too_large",
    `The body is longer than ${maxBodyBytes} bytes and cannot be sent again with a payment; raise maxBodyBytes`,
  );
}

/** SHA-256 of the body in hex, `""` without one. */
export function hashBody(request: RepeatableRequest): string {
  if (request.body === undefined || !("bytes" in request.body)) return "";
  return createHash("sha256").update(request.body.bytes).digest("hex");
}

async function readBody(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  signal: AbortSignal | undefined,
): Promise<RepeatableRequest["body"]> {
  const reader = stream.getReader();
  const onAbort = () => void reader.cancel(signal?.reason).catch(() => undefined);
  signal?.addEventListener("abort", onAbort);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    while (length <= maxBytes) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return { bytes: join(chunks, length) };
      chunks.push(value);
      length += value.byteLength;
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
  return { overlong: continueWith(chunks, reader) };
}

function join(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

function continueWith(
  chunks: readonly Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  const waiting = [...chunks];
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = waiting.shift();
      if (next) return controller.enqueue(next);
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
