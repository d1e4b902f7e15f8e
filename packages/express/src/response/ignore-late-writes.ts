import type { ServerResponse } from "node:http";
import { headersOf, replaceHeaders } from "./held-answer.ts";
import { overrideMethods } from "./override-methods.ts";

/**
 * Shields an answered response from a late handler, and throws nothing at it. The handler saw no
 * answer while it was held. Nor did Express, which answers for an error once the request is read,
 * and would throw where no caller catches.
 */
export function ignoreLateWrites(response: ServerResponse): void {
  // Not before the head has left: middleware outside may still be waiting to write it.
  if (response.headersSent) Object.assign(response, inert);
  else response.once("finish", () => Object.assign(response, inert));
}

/**
 * Answers with a refusal, and keeps every write of a late handler out of it: those are not paid
 * for. Middleware outside may end the response later, by itself or by its `end`. The head and the
 * body of the refusal go out then.
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
  const uncover = overrideMethods(response, { ...inert, end, writeHead, writeHeader: writeHead });

  // Node calls it before the first byte, for any caller that ends the response.
  function writeHead(): ServerResponse {
    uncover();
    response.statusCode = statusCode;
    response.statusMessage = statusMessage;
    replaceHeaders(response, headers);
    response.writeHead(statusCode);
    // The body follows the head, and may come by the response's own `end`.
    Object.assign(response, inert, { end });
    return response;
  }
}

function ignore<T>(this: T): T {
  return this;
}

const inert = {
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
