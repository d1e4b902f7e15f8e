import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import { types } from "node:util";
import { hasBody } from "../routes/head-form.ts";
import { overrideMethods } from "./override-methods.ts";
import { isGone, whenGone } from "./when-gone.ts";
import { readArguments } from "./write-arguments.ts";
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
    const leave = () => resolve("disconnected");
    const stopWaiting = whenGone(response, leave);
    whenDestroyed(response, leave);
    const { socket } = response.req;
    // An adapter's own, which emits nothing. Express destroys it where a handler throws halfway.
    const leaveOpen = () => {
      if (!response.writableEnded) leave();
    };
    const uncover = socket instanceof Socket ? undefined : whenDestroyed(socket, leaveOpen);
    response.once("finish", () => {
      stopWaiting();
      uncover?.();
      resolve(response.statusCode < 400 ? "answered" : "failed");
    });
  });
}

/**
 * As `whenStreamed`, for an answer that a handler writes. `short`: it has ended below the length of
 * its head. Node sends such a part without an error.
 */
export async function whenWritten(response: ServerResponse): Promise<StreamedOutcome | "short"> {
  const isShort = watchLength(response);
  const outcome = await whenStreamed(response);
  return outcome === "answered" && isShort() ? "short" : outcome;
}

function watchLength(response: ServerResponse): () => boolean {
  const { write, end } = response;
  let size = 0;
  let isShort = false;
  overrideMethods(response, {
    write(...written: unknown[]) {
      size += sizeOf(written);
      return Reflect.apply(write, response, written);
    },
    end(...written: unknown[]) {
      size += sizeOf(written);
      // Before middleware outside may change both.
      isShort = hasBody(response) && size < Number(response.getHeader("Content-Length"));
      return Reflect.apply(end, response, written);
    },
  });
  return () => isShort;
}

function sizeOf(written: readonly unknown[]): number {
  const { chunk, encoding } = readArguments(written);
  if (typeof chunk === "string") return Buffer.byteLength(chunk, encoding);
  return types.isUint8Array(chunk) ? chunk.length : 0;
}

/** @returns ends the wait */
function whenDestroyed(target: { destroy(error?: Error): unknown }, tell: () => void): () => void {
  const { destroy } = target;
  return overrideMethods(target, {
    destroy(error?: Error) {
      // An answer that has gone out emits `finish` first.
      setImmediate(tell);
      return destroy.call(target, error);
    },
  });
}
