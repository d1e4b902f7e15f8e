import type { ServerResponse } from "node:http";
import { headersOf, replaceHeaders } from "./held-answer.ts";
import { overrideMethods } from "./override-methods.ts";

/**
 * Lets nothing that a late handler does reach a response which has been answered, and throws nothing at
 * it: while the answer was held it has seen none, and neither has Express, which answers for an error
 * once the request is read, and would throw where nobody catches.
 */
export function ignoreLateWrites(response: ServerResponse): void {
  // Not before the head has left: middleware outside may still be waiting to write it.
  if (response.headersSent) Object.assign(response, deaf);
  else response.once("finish", () => Object.assign(response, deaf));
}

/**
 * Answers with a refusal, and lets nothing of a late handler into it: that has not been paid for.
 * Middleware outside may end the response later, by itself or by its `end`: what goes out then is the
 * head and the body of the refusal.
 */
export function refuse(response: ServerResponse, answer: () => void): void {
  const endOutside = response.end;
  let ending: unknown[] = [];
  const stopListening = overrideMethods(response, {
    end(...written: unknown[]) {
      ending = written;
      return Reflect.apply(endOutside, response, written);
    },
  });
  answer();
  stopListening();
  if (response.headersSent) {
    ignoreLateWrites(response);
    return;
  }
  const { statusCode, statusMessage } = response;
  const headers = headersOf(response);
  const end = () => Reflect.apply(endOutside, response, ending);
  const uncover = overrideMethods(response, { ...deaf, end, writeHead, writeHeader: writeHead });

  // Node calls it before the first byte, whoever ends the response.
  function writeHead(): ServerResponse {
    uncover();
    response.statusCode = statusCode;
    response.statusMessage = statusMessage;
    replaceHeaders(response, headers);
    response.writeHead(statusCode);
    // What follows the head is still to come, and may come by the response's own `end`.
    Object.assign(response, deaf, { end });
    return response;
  }
}

function ignore<T>(this: T): T {
  return this;
}

const deaf = {
  setHeader: ignore,
  setHeaders: ignore,
  appendHeader: ignore,
  removeHeader: () => undefined,
  writeHead: ignore,
  writeHeader: ignore,
  flushHeaders: () => undefined,
  write: () => true,
  end: ignore,
  addTrailers: () => undefined,
  writeEarlyHints: () => undefined,
};
