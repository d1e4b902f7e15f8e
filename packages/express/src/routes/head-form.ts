import type { ServerResponse } from "node:http";

/** The way in which Node came to write a head. Its bytes depend on it, beside the head itself. */
export interface HeadForm {
  /** Node writes head and first text in one encoding. */
  encoding: "latin1" | "utf8";
  /**
   * True if the body was complete with the head. Node then writes `Content-Disposition`
   * differently.
   */
  knowsLength: boolean;
}

/** First write of a handler. */
export interface FirstWrite {
  /** `undefined`: the head alone, by `flushHeaders`. */
  chunk: unknown;
  encoding: BufferEncoding | undefined;
  /** True if it is all of the answer, and no `writeHead` came before it. */
  knowsLength: boolean;
}

/** The form in which Node would write a head before this. */
export function headFormOf(
  response: ServerResponse,
  { chunk, encoding, knowsLength }: FirstWrite,
): HeadForm {
  // A chunk begins with its length, in latin1.
  const isText =
    hasBody(response) && (knowsLength || !isChunked(response)) && typeof chunk === "string";
  const isUtf8 = isText && chunk !== "" && (encoding === undefined || encoding === "utf8");
  return { encoding: isUtf8 ? "utf8" : "latin1", knowsLength };
}

/** The form of a head that was sent by `flushHeaders`. */
export const flushedHead: HeadForm = { encoding: "utf8", knowsLength: false };

/** Returns whether a response has a body, regardless of the handler's writes. */
export function hasBody({ req, statusCode }: ServerResponse): boolean {
  return req.method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
}

/**
 * Returns whether a response of unknown length goes out in chunks. One to HTTP/1.0 does not, nor
 * does that of an adapter without a connection.
 */
export function isChunked(response: ServerResponse): boolean {
  const { useChunkedEncodingByDefault: mayBe } = response;
  return mayBe && hasBody(response) && !response.hasHeader("Content-Length");
}
