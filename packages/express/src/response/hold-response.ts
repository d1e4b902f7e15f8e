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
  /** The process holds as many bytes as it may. */
  | { kind: "no_room" }
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

/** State of a response while it is held. */
interface Hold {
  readonly response: ServerResponse;
  readonly maxResponseBytes: number;
  readonly mayHold: (bytes: number) => boolean;
  chunks: Buffer[];
  size: number;
  trailers: HeldAnswer["trailers"];
  /** The beginning of the handler's answer, once its head is final. */
  begun: Beginning | undefined;
  /** The form in which Node would have sent the head of that answer. */
  headForm: HeadForm | undefined;
  /** True if the hold takes no further writes. */
  isOver: boolean;
  /** True if the handler has ended its answer. */
  hasEnded: boolean;
  /** The method that takes the handler's bytes, unless a wrapper covers it. */
  write: unknown;
  resolveOutcome(outcome: HeldOutcome): void;
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
  options: {
    maxResponseBytes: number;
    /** Called with the size of each growth; returns whether there is room for it. */
    mayHold: (bytes: number) => boolean;
  },
): HeldResponse {
  const before = {
    statusCode: response.statusCode,
    statusMessage: response.statusMessage,
    headers: headersOf(response),
  };
  const hold: Hold = {
    response,
    chunks: [],
    size: 0,
    trailers: [],
    begun: undefined,
    headForm: undefined,
    isOver: false,
    hasEnded: false,
    write: undefined,
    resolveOutcome: ignoreOutcome,
    ...options,
  };
  const outcome = new Promise<HeldOutcome>((resolve) => {
    hold.resolveOutcome = resolve;
  });
  const { destroy, ...methods } = holdingMethods(hold);
  hold.write = methods.write;
  // Stays after the release, as does `whenStreamed` in front of it.
  overrideMethods(response, { destroy });
  const uncover = overrideMethods(response, methods);
  // Not by `finished`: Node's server closes the connection of a finished response when it stops.
  Object.defineProperty(response, "writableEnded", {
    get: () => hold.hasEnded,
    configurable: true,
  });

  function restore(): void {
    uncover();
    Reflect.deleteProperty(response, "writableEnded");
    // The prototype's `end` sets it before it reaches the guard.
    Reflect.set(response, "finished", false);
  }

  return {
    outcome,
    release(answer, decorate) {
      hold.isOver = true;
      restore();
      replaceHeaders(response, answer.headers);
      decorate?.();
      sendAnswer(response, answer);
      ignoreLateWrites(response);
    },
    replace(answer) {
      stop(hold);
      restore();
      response.statusCode = before.statusCode;
      response.statusMessage = before.statusMessage;
      replaceHeaders(response, before.headers);
      refuse(response, answer);
    },
  };
}

function ignoreOutcome(): void {}

/** The methods of a held response, which write to the hold. */
function holdingMethods(hold: Hold) {
  const { response } = hold;
  const destroy = response.destroy;
  const writeHead = (...head: unknown[]) => holdHead(hold, head);
  return {
    writeHead,
    // Its legacy alias.
    writeHeader: writeHead,
    flushHeaders() {
      writeHeadOnce(hold);
      hold.headForm ??= flushedHead;
    },
    write(...written: unknown[]) {
      const { chunk, encoding, callback } = readArguments(written);
      if (!hold.isOver) {
        writeHeadOnce(hold);
        append(hold, { chunk, encoding, knowsLength: false });
      }
      if (callback) process.nextTick(callback);
      return true;
    },
    end(...written: unknown[]) {
      const { chunk, encoding, callback } = readArguments(written);
      if (callback) response.once("finish", callback);
      if (!hold.isOver) {
        const knowsLength = hold.begun === undefined;
        writeHeadOnce(hold);
        if (chunk !== undefined && chunk !== null) append(hold, { chunk, encoding, knowsLength });
        else startAgainOnFailure(hold);
      }
      const { begun } = hold;
      if (begun && !hold.isOver) {
        finish(hold, { kind: "answered", answer: readAnswer(begun, hold) });
      }
      hold.hasEnded = true;
      return response;
    },
    addTrailers(added: unknown) {
      if (!hold.isOver) hold.trailers = [...hold.trailers, ...readTrailers(added)];
    },
    // Hints are part of the sold answer.
    writeEarlyHints(_hints: unknown, callback?: () => void) {
      if (callback) process.nextTick(callback);
    },
    destroy(error?: Error) {
      finish(hold, { kind: "destroyed" });
      return destroy.call(response, error);
    },
    ...guardConnection(response, () => finish(hold, { kind: "bypassed" })),
  };
}

function finish(hold: Hold, result: HeldOutcome): void {
  stop(hold);
  hold.resolveOutcome(result);
}

/** Takes no further writes, and frees the chunks: a handler may keep the response indefinitely. */
function stop(hold: Hold): void {
  hold.isOver = true;
  hold.chunks = [];
}

function holdHead(hold: Hold, head: readonly unknown[]): ServerResponse {
  const { response, begun, isOver } = hold;
  // Compression calls it before each write, with the status of that moment.
  if (isOver || (begun !== undefined && !isFailure(head[0]))) return response;
  applyHead(response, head);
  hold.begun ??= beginningOf(response);
  return response;
}

/** As Node does before the first byte: through every wrapper of `writeHead`. */
function writeHeadOnce(hold: Hold): void {
  const { begun, response } = hold;
  if (begun === undefined) response.writeHead(response.statusCode);
  // A wrapper may keep the call to itself.
  if (hold.begun === undefined) holdHead(hold, [response.statusCode]);
}

function append(hold: Hold, written: FirstWrite): void {
  startAgainOnFailure(hold);
  if (hold.isOver) return;
  const bytes = toBytes(written.chunk, written.encoding);
  hold.headForm ??= headFormOf(hold.response, written);
  hold.size += bytes.length;
  if (hold.size > hold.maxResponseBytes) finish(hold, { kind: "too_large" });
  else if (!hold.mayHold(bytes.length)) finish(hold, { kind: "no_room" });
  else hold.chunks.push(bytes);
}

/** An error answer that begins after the handler has written replaces the earlier output. */
function startAgainOnFailure(hold: Hold): void {
  const { response, begun } = hold;
  const { statusCode } = response;
  if (begun === undefined || begun.status === statusCode || !isFailure(statusCode)) return;
  // A wrapper of `write` still has the first half, and nothing can be taken back from it.
  if (response.write !== hold.write) {
    finish(hold, { kind: "mixed" });
    return;
  }
  applyHead(response, [statusCode]);
  for (const [name, value] of begun.headers) {
    const isUnchanged = String(response.getHeader(name)) === String(value);
    if (headersOfBody.has(name) && isUnchanged) response.removeHeader(name);
  }
  hold.begun = beginningOf(response);
  hold.chunks = [];
  hold.size = 0;
  hold.trailers = [];
  hold.headForm = undefined;
}

/**
 * Returns whether a status is one of a failure, which is not charged. Node refuses more than 999.
 */
function isFailure(status: unknown): boolean {
  const code = Number(status);
  return code >= 400 && code <= 999;
}

function readAnswer(begun: Beginning, { chunks, size, trailers, headForm }: Hold): HeldAnswer {
  const answer = { trailers, body: Buffer.concat(chunks, size), ...begun };
  return isAsciiHead(answer) ? answer : { headForm, ...answer };
}

/**
 * The head of an answer, as it is at the first byte. Node would have sent it then: later changes
 * have no effect, unless they begin an error answer.
 */
type Beginning = Pick<HeldAnswer, "status" | "statusMessage" | "headers">;

/** The headers that describe an answer's own bytes alone. */
const headersOfBody = new Set(["content-encoding", "content-length", "content-range"]);

/** Throws where Node would, while the handler can still catch it: later, it has been paid for. */
function beginningOf(response: ServerResponse): Beginning {
  const { statusCode: status, statusMessage } = response;
  // Node would send it, and its client wait for another.
  if (status < 200) throw new RangeError(`The status ${status} is that of no final answer`);
  if (statusMessage !== undefined) validateHeaderValue("statusMessage", statusMessage);
  return { status, statusMessage, headers: headersOf(response) };
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
