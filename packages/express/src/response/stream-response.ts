import type { ServerResponse } from "node:http";
import { overrideMethods } from "./override-methods.ts";
import { isGone, whenGone } from "./when-gone.ts";
import { applyHead } from "./write-head.ts";

/** Adds headers of ours to the handler's head, just before it is sent. */
export function decorateHead(response: ServerResponse, decorate: () => void): void {
  // One method, under both of its names.
  const restore = overrideMethods(response, { writeHead, writeHeader: writeHead });

  function writeHead(...head: unknown[]): ServerResponse {
    applyHead(response, head);
    decorate();
    restore();
    return response.writeHead(response.statusCode);
  }
}

/** Outcome of a streamed answer. */
export type StreamedOutcome = "answered" | "failed" | "disconnected";

/**
 * Resolves when the handler's answer has gone out, or when the connection is gone. A destroyed
 * response counts as that, unless its answer was ended and goes out. One without a connection, as
 * adapters for functions make it, need not close.
 */
export function whenStreamed(response: ServerResponse): Promise<StreamedOutcome> {
  return new Promise((resolve) => {
    if (isGone(response)) {
      resolve("disconnected");
      return;
    }
    const stopWaiting = whenGone(response, () => resolve("disconnected"));
    const { destroy } = response;
    overrideMethods(response, {
      destroy(error?: Error) {
        // An answer that has gone out emits `finish` first.
        setImmediate(() => resolve("disconnected"));
        return destroy.call(response, error);
      },
    });
    response.once("finish", () => {
      stopWaiting();
      resolve(response.statusCode < 400 ? "answered" : "failed");
    });
  });
}
