import type { Request, RequestHandler } from "express";
import { createBodyPool, defaultMaxUnverifiedBytes, type PooledBody } from "../replay/body-pool.ts";
import { isBodyUnread, readRequestBody } from "../replay/request-body.ts";
import { type ClientKey, limitKeyOf } from "../reservations/limit-key.ts";

/** The body was dropped before its end: there was no room for it, and it was the slowest. */
export class BodyDroppedError extends Error {
  override readonly name = "BodyDroppedError";
}

/**
 * The pool that all facilitator routers of this process share. Gates have another: a call would
 * measure their larger bodies by its own bounds, and theirs would fill the room of `/settle`.
 */
export const callBodies = createBodyPool();

interface ReceiveOptions {
  maxRequestBytes: number;
  clientKey: ClientKey | undefined;
}

/**
 * Middleware that reads the body of a call to its end, and puts it back for a parser. Meanwhile it
 * counts in the process's pool of such bodies, against its client. A body that is inflated while it
 * comes would hold many times what its client has sent.
 *
 * It passes on a `BodyDroppedError`, or an error with the status 413, as body parsers do.
 */
export function receiveBody(options: ReceiveOptions): RequestHandler {
  return async function receive(request, response, next) {
    const state = await read(request, options).catch((error: unknown) => ({ error }));
    switch (state) {
      case "known":
      case "unknown":
        return next();
      case "aborted":
        return;
      case "too_large":
        // The rest is read and forgotten: a client that is still sending sees the answer.
        request.resume();
        return next(Object.assign(new Error("The body is too large"), { status: 413 }));
      case "dropped":
        response.setHeader("Connection", "close");
        return next(new BodyDroppedError());
      default:
        return next(state.error);
    }
  };
}

async function read(request: Request, { maxRequestBytes, clientKey }: ReceiveOptions) {
  if (!isBodyUnread(request)) return "unknown";
  const key = keyOf(request, clientKey);
  let pooled: PooledBody | undefined;
  try {
    const { state } = await readRequestBody(request, {
      maxRequestBytes,
      open(onDrop) {
        pooled = callBodies.open({
          key,
          maxUnverifiedBytes: Math.max(defaultMaxUnverifiedBytes, maxRequestBytes),
          maxBodyBytes: maxRequestBytes,
          onDrop,
        });
        return pooled;
      },
    });
    return state;
  } finally {
    pooled?.close();
  }
}

/** A fault of the seller's function is answered where the call is made. */
function keyOf(request: Request, clientKey: ClientKey | undefined): string {
  try {
    return limitKeyOf(request, clientKey);
  } catch {
    return limitKeyOf(request);
  }
}
