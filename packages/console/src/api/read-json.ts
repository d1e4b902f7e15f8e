import type { IncomingMessage } from "node:http";
import { RefusedError, refusals } from "./refusal.ts";

/** Time for a body: a peer may send a byte at a time. */
const bodyTimeoutMs = 15_000;

/**
 * Reads a JSON body, or takes the one that a body parser of the application has read before.
 *
 * @throws RefusedError where it is not JSON, or too large
 */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json") {
    throw new RefusedError(refusals.malformed("The request is not application/json."));
  }
  if (request.readableEnded && "body" in request) return request.body;
  const timer = setTimeout(() => request.destroy(), bodyTimeoutMs);
  try {
    return JSON.parse(await readText(request, maxBytes));
  } catch (error) {
    if (error instanceof RefusedError) throw error;
    throw new RefusedError(refusals.malformed("The request's body is not JSON."));
  } finally {
    clearTimeout(timer);
  }
}

async function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Left undestroyed, so that the refusal of a body that is too large can go out.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    if (!(chunk instanceof Uint8Array)) break;
    size += chunk.length;
    if (size > maxBytes) throw new RefusedError(refusals.tooLarge);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
