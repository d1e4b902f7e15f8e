import { type ServerResponse, validateHeaderName, validateHeaderValue } from "node:http";
import { type FirstWrite, flushedHead, type HeadForm, headFormOf } from "../routes/head-form.ts";
import { guardConnection } from "./guard-connection.ts";
import {
  type HeldAnswer,
  headersOf,
  isAsciiHead,
  replaceHeaders,
  sendAnswer,
} from "./held-answer.ts";
import { ignoreLateWrites, refuse } from "./ignore-late-writes.ts";
import { overrideMethods } from "./override-methods.ts";
import { readArguments, toBytes } from "./write-arguments.ts";
import { applyHead } from "./write-head.ts";

/** Outcome of the handler's work on a held response. */
export type HeldOutcome =
  /** The answer is complete, and its status says whether the handler has failed. */
  | { kind: "answered"; answer: HeldAnswer }
  /** The answer exceeds the bound. */
  | { kind: "too_large" }
  /**
   * An error came after half an answer, and a wrapper behind the gate (compression) mixes the two.
   */
  | { kind: "mixed" }
  /** The handler has called a method of Node's own in place of the response's. Nothing was sent. */
  | { kind: "bypassed" }
  /** The handler has destroyed the response, as a pipeline does when its source fails. */
  | { kind: "destroyed" };

/** A response that a handler writes, and of which nothing is sent. */
export interface HeldResponse {
  /** Resolves when the handler has ended the response, or can no longer end it. */
  outcome: Promise<HeldOutcome>;
  /** Sends an answer of the handler's; `decorate` adds the headers that go out with it. */
  release(answer: HeldAnswer, decorate?: () => void): void;
  /**
   * Undoes all changes of the handler to the response, and lets `answer` write another one. Later
   * calls of the handler have no effect.
   */
  replace(answer: () => void): void;
}

/**
 * Holds a response: status, headers and body stay here until `release` or `replace`.
 *
 * Nothing is sent meanwhile, and `headersSent` says so; `writableEnded` says whether the handler
 * has ended its answer. When a handler fails halfway through its answer, the application's error
 * handler still answers, and its answer replaces the first. Middleware that wraps the response
 * before this sees one complete answer on `release`. Middleware that wraps it later (compression,
 * sessions) works on the held one.
 */
export function holdResponse(
  response: ServerResponse,
  { maxBytes }: { maxBytes: number },
): HeldResponse {
  const before = {
    statusCode: response.statusCode,
    statusMessage: response.statusMessage,
    headers: headersOf(response),
  };
  let chunks: Buffer[] = [];
  let size = 0;
  let trailers: HeldAnswer["trailers"] = [];
  /** The beginning of the handler's answer. */
  let begun: ReturnType<typeof beginningOf> | undefined;
  /** The form in which Node would have sent the head of that answer. */
  let headForm: HeadForm | undefined;
  let isOver = false;
  let hasEnded = false;
  let resolveOutcome: (outcome: HeldOutcome) => void = () => {};
  const outcome = new Promise<HeldOutcome>((resolve) => {
    resolveOutcome = resolve;
  });

  const destroy = response.destroy;
  const methods = {
    writeHead,
    // Its legacy alias.
    writeHeader: writeHead,
    flushHeaders() {
      writeHeadOnce();
      headForm ??= flushedHead;
    },
    write(...written: unknown[]) {
      const { chunk, encoding, callback } = readArguments(written);
      if (!isOver) {
        writeHeadOnce();
        append({ chunk, encoding, knowsLength: false });
      }
      if (callback) process.nextTick(callback);
      return true;
    },
    end(...written: unknown[]) {
      const { chunk, encoding, callback } = readArguments(written);
      if (callback) response.once("finish", callback);
      if (!isOver) {
        const knowsLength = begun === undefined;
        writeHeadOnce();
        if (chunk !== undefined && chunk !== null) append({ chunk, encoding, knowsLength });
        else startAgainOnFailure();
      }
      if (!isOver) finish({ kind: "answered", answer: readAnswer() });
      hasEnded = true;
      return response;
    },
    addTrailers(added: unknown) {
      if (!isOver) trailers = [...trailers, ...readTrailers(added)];
    },
    // Hints are part of the sold answer.
    writeEarlyHints(_hints: unknown, callback?: () => void) {
      if (callback) process.nextTick(callback);
    },
    destroy(error?: Error) {
      finish({ kind: "destroyed" });
      return destroy.call(response, error);
    },
    ...guardConnection(response, () => finish({ kind: "bypassed" })),
  };
  const uncover = overrideMethods(response, methods);
  // Not by `finished`: Node's server closes the connection of a finished response when it stops.
  Object.defineProperty(response, "writableEnded", { get: () => hasEnded, configurable: true });

  function restore(): void {
    uncover();
    Reflect.deleteProperty(response, "writableEnded");
    // The prototype's `end` sets it before it reaches the guard.
    Reflect.set(response, "finished", false);
  }

  return {
    outcome,
    release(answer, decorate) {
      isOver = true;
      restore();
      replaceHeaders(response, answer.headers);
      decorate?.();
      sendAnswer(response, answer);
      ignoreLateWrites(response);
    },
    replace(answer) {
      stop();
      restore();
      response.statusCode = before.statusCode;
      response.statusMessage = before.statusMessage;
      replaceHeaders(response, before.headers);
      refuse(response, answer);
    },
  };

  function finish(result: HeldOutcome): void {
    stop();
    resolveOutcome(result);
  }

  /**
   * Takes no further writes, and frees the chunks: a handler may keep the response indefinitely.
   */
  function stop(): void {
    isOver = true;
    chunks = [];
  }

  function writeHead(...head: unknown[]): ServerResponse {
    if (!isOver) applyHead(response, head);
    begun ??= beginningOf(response);
    return response;
  }

  /** As Node does before the first byte: through every wrapper of `writeHead`. */
  function writeHeadOnce(): void {
    if (begun === undefined) response.writeHead(response.statusCode);
  }

  function append(written: FirstWrite): void {
    startAgainOnFailure();
    if (isOver) return;
    const bytes = toBytes(written.chunk, written.encoding);
    headForm ??= headFormOf(response, written);
    size += bytes.length;
    if (size > maxBytes) {
      finish({ kind: "too_large" });
      return;
    }
    chunks.push(bytes);
  }

  /** An error answer that begins after the handler has written replaces the earlier output. */
  function startAgainOnFailure(): void {
    if (begun === undefined || begun.status >= 400 || response.statusCode < 400) return;
    // A wrapper of `write` still has the first half, and nothing can be taken back from it.
    if (response.write !== methods.write) {
      finish({ kind: "mixed" });
      return;
    }
    for (const { name, value } of begun.ofBody) {
      if (value !== undefined && response.getHeader(name) === value) response.removeHeader(name);
    }
    chunks = [];
    size = 0;
    trailers = [];
    begun = beginningOf(response);
    headForm = undefined;
  }

  /** Throws where Node would, while the handler can still catch it: later, it has been paid for. */
  function readAnswer(): HeldAnswer {
    const { statusCode: status, statusMessage } = response;
    if (statusMessage !== undefined) validateHeaderValue("statusMessage", statusMessage);
    const headers = headersOf(response);
    const body = Buffer.concat(chunks, size);
    const answer = { status, statusMessage, headers, trailers, body };
    return isAsciiHead(answer) ? answer : { ...answer, headForm };
  }
}

/** The status of an answer, and the headers that describe its own bytes alone. */
function beginningOf(response: ServerResponse) {
  const ofBody = ["content-encoding", "content-length", "content-range"].map((name) => ({
    name,
    value: response.getHeader(name),
  }));
  return { status: response.statusCode, ofBody };
}

function readTrailers(added: unknown): HeldAnswer["trailers"] {
  const entries: readonly unknown[] = Array.isArray(added) ? added : Object.entries(added ?? {});
  return entries.flatMap((entry): HeldAnswer["trailers"] => {
    if (!Array.isArray(entry)) return [];
    const [name, value] = [String(entry[0]), String(entry[1])];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return [[name, value]];
  });
}
