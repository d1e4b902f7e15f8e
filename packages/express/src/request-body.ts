import { createHash } from "node:crypto";
import type { Request } from "express";

/** What is known of a request's body. */
export type RequestBody =
  /** Hash of its bytes, or of what a body parser made of them. */
  | { state: "known"; hash: string }
  /** Somebody has read it and left nothing to know it by. */
  | { state: "unknown" }
  | { state: "too_large" }
  /** The buyer left before the end of it. */
  | { state: "aborted" };

// A second gate on the same request finds the stream read, by the first.
const knownHashes = new WeakMap<Request, string>();

/**
 * Knows the body of a request, whether a body parser runs before or after: an unread stream is read
 * to its end and put back, so that whoever comes later reads it from the beginning; of a read one,
 * `rawBody` or else the canonical form of what was parsed is taken.
 */
export async function readRequestBody(request: Request, maxBytes: number): Promise<RequestBody> {
  const known = knownHashes.get(request);
  if (known !== undefined) return { state: "known", hash: known };
  const body = await read(request, maxBytes);
  if (body.state === "known") knownHashes.set(request, body.hash);
  return body;
}

async function read(request: Request, maxBytes: number): Promise<RequestBody> {
  const length = Number(request.headers["content-length"] ?? 0);
  const isChunked = request.headers["transfer-encoding"] !== undefined;
  if (!isChunked && length === 0) return known("");
  if (length > maxBytes) return { state: "too_large" };
  if (!request.readableDidRead && request.readableFlowing !== true) {
    return request.destroyed ? { state: "aborted" } : readStream(request, maxBytes);
  }
  return readParsed(request);
}

function readStream(request: Request, maxBytes: number): Promise<RequestBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("readable", onReadable);
    request.on("close", onClose);

    function onReadable(): void {
      for (let chunk: unknown = request.read(); chunk !== null; chunk = request.read()) {
        const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
        chunks.push(bytes);
        size += bytes.length;
        if (size > maxBytes) break;
      }
      if (size > maxBytes) {
        finish({ state: "too_large" });
        return;
      }
      if (!request.complete) return;
      const body = Buffer.concat(chunks, size);
      // In the tick that read the last byte: "end" is not emitted while there is something to read.
      request.unshift(body);
      finish(known(body));
    }

    function onClose(): void {
      finish({ state: "aborted" });
    }

    function finish(body: RequestBody): void {
      request.off("readable", onReadable);
      request.off("close", onClose);
      resolve(body);
    }
  });
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
    // Circular, or otherwise beyond JSON: not what a body parser makes.
    return { state: "unknown" };
  }
}

function sortMembers(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function known(bytes: string | Uint8Array): RequestBody {
  return { state: "known", hash: createHash("sha256").update(bytes).digest("hex") };
}
