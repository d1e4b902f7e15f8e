import { hash } from "node:crypto";
import type { Request } from "express";
import type { PooledBody } from "./body-pool.ts";

/** State of a request's body. */
export type RequestBody =
  /** Hash of its bytes, or of a body parser's result; and the bytes that were read here. */
  | { state: "known"; hash: string; bytes: number }
  /** Other middleware has read the body and left nothing to identify it. */
  | { state: "unknown" }
  | { state: "too_large" }
  /** Dropped before its end: the pool had no room. */
  | { state: "dropped" }
  /** The buyer disconnected before its end, or other middleware has answered. */
  | { state: "aborted" };

// A second gate on the same request finds the stream already read, by the first.
const knownHashes = new WeakMap<Request, string>();

interface ReadBodyOptions {
  maxRequestBytes: number;
  /** Registers a body that has to be read here in the pool. */
  open: (onDrop: () => void) => PooledBody;
}

/** Returns whether a body has to be read, byte by byte, before its hash is known. */
export function isBodyUnread(request: Request): boolean {
  const isKnown = knownHashes.has(request) || isReadElsewhere(request) || hasEndedEmpty(request);
  return hasBody(request) && !isKnown;
}

/**
 * Identifies the body of a request, whether a body parser runs before or after. An unread stream is
 * read to its end and put back: a later reader gets it from the beginning. Of a read one, `rawBody`
 * is taken, or else the canonical form of the parsed value.
 */
export async function readRequestBody(
  request: Request,
  options: ReadBodyOptions,
): Promise<RequestBody> {
  const known = knownHashes.get(request);
  if (known !== undefined) return { state: "known", hash: known, bytes: 0 };
  const body = await read(request, options);
  if (body.state === "known") knownHashes.set(request, body.hash);
  return body;
}

/**
 * Empties an answered request whose body was put back, unless another reads it. Node empties only
 * those of which nothing was read, and holds others until the connection's next request.
 */
export function emptyUnread(request: Request): void {
  const isUnread = request.readableFlowing === null && request.listenerCount("readable") === 0;
  if (request.readableDidRead && isUnread) request.resume();
}

const emptyBody = known("");

async function read(request: Request, options: ReadBodyOptions): Promise<RequestBody> {
  if (!hasBody(request) || hasEndedEmpty(request)) return emptyBody;
  if (lengthOf(request) > options.maxRequestBytes) return { state: "too_large" };
  if (isReadElsewhere(request)) return readParsed(request);
  return request.destroyed ? { state: "aborted" } : readStream(request, options);
}

function lengthOf(request: Request): number {
  return Number(request.headers["content-length"] ?? 0);
}

function hasBody(request: Request): boolean {
  return request.headers["transfer-encoding"] !== undefined || lengthOf(request) > 0;
}

/**
 * Returns whether a chunked body has come to its end without a byte, and without a reader. Its
 * stream emits `end` to the next reader, and `readable` to none.
 */
function hasEndedEmpty(request: Request): boolean {
  // Adapters set `complete` before the bytes come, and give a length.
  if (lengthOf(request) > 0 || !request.complete || request.readableLength > 0) return false;
  return !isReadElsewhere(request);
}

function isReadElsewhere(request: Request): boolean {
  return request.readableDidRead || request.readableFlowing === true;
}

function readStream(
  request: Request,
  { maxRequestBytes, open }: ReadBodyOptions,
): Promise<RequestBody> {
  return new Promise((resolve) => {
    const bytes = createGrowingBytes(maxRequestBytes);
    let isOver = false;
    const pooled = open(() => finish({ state: "dropped" }));
    request.on("readable", onReadable);
    request.on("close", onClose);
    request.res?.once("finish", onAnswered);

    function onReadable(): void {
      // At the end of an empty stream, `read` would take the `end` from a later reader.
      if (bytes.size() === 0 && hasEndedEmpty(request)) {
        pooled.complete();
        finish(emptyBody);
        return;
      }
      for (let chunk: unknown = request.read(); chunk !== null; chunk = request.read()) {
        bytes.append(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)));
        if (bytes.size() > maxRequestBytes) {
          finish({ state: "too_large" });
          return;
        }
      }
      // May drop this very body.
      pooled.hold(bytes.held());
      if (isOver || !request.complete) return;
      pooled.complete();
      const body = bytes.all();
      // In the tick that read the last byte: "end" is not emitted while there is something to read.
      request.unshift(body);
      finish(known(body, body.length));
    }

    function onClose(): void {
      finish({ state: "aborted" });
    }

    function onAnswered(): void {
      if (isOver) {
        emptyUnread(request);
        return;
      }
      finish({ state: "aborted" });
      request.resume();
    }

    function finish(body: RequestBody): void {
      isOver = true;
      // The listener of the answer lives on, behind an earlier one that may never come.
      bytes.free();
      request.off("readable", onReadable);
      request.off("close", onClose);
      resolve(body);
    }
  });
}

/**
 * Growing buffer for bytes that arrive in pieces. A piece by itself takes many times its size, and
 * a body may come as a million of them.
 */
function createGrowingBytes(maxRequestBytes: number) {
  let buffer: Buffer = Buffer.alloc(0);
  let size = 0;
  return {
    append(piece: Buffer): void {
      if (size === 0) {
        // Most bodies are one piece, which is not copied.
        buffer = piece;
      } else {
        if (size + piece.length > buffer.length) {
          const needed = size + piece.length;
          const larger = Buffer.allocUnsafeSlow(
            Math.max(needed, Math.min(2 * needed, maxRequestBytes)),
          );
          buffer.copy(larger, 0, 0, size);
          buffer = larger;
        }
        piece.copy(buffer, size);
      }
      size += piece.length;
    },
    size: () => size,
    /** Size of the buffer. */
    held: () => buffer.length,
    all: () => buffer.subarray(0, size),
    free(): void {
      buffer = Buffer.alloc(0);
      size = 0;
    },
  };
}

function readParsed(request: Request): RequestBody {
  const rawBody: unknown = Reflect.get(request, "rawBody");
  if (typeof rawBody === "string" || rawBody instanceof Uint8Array) return known(rawBody);
  const body: unknown = request.body;
  if (body === undefined || request.is("multipart/*")) return { state: "unknown" };
  if (typeof body === "string" || body instanceof Uint8Array) return known(body);
  try {
    return known(JSON.stringify(body, sortMembers));
  } catch {
    // Circular, or otherwise beyond JSON: no body parser returns that.
    return { state: "unknown" };
  }
}

function sortMembers(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function known(content: string | Uint8Array, bytes = 0): RequestBody {
  return { state: "known", hash: hash("sha256", content), bytes };
}
