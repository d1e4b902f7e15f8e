import { isAscii } from "node:buffer";
import type { ServerResponse } from "node:http";
import { type HeadForm, hasBody, isChunked } from "../routes/head-form.ts";

/** A header as Node holds it. */
type HeaderValue = number | string | string[];

/** A complete answer that has not been sent. */
export interface HeldAnswer {
  status: number;
  /** Only where it is not the usual one. */
  statusMessage?: string | undefined;
  /** Names in lower case. */
  headers: [name: string, value: HeaderValue][];
  trailers: [name: string, value: string][];
  /** Where a character of the head is beyond ASCII, the form in which Node would have sent it. */
  headForm?: HeadForm | undefined;
  body: Buffer;
}

/** Returns whether a head has the same bytes in every form. */
export function isAsciiHead({ statusMessage, headers }: Omit<HeldAnswer, "body">): boolean {
  return (
    !beyondAscii.test(statusMessage ?? "") && !headers.some(([, value]) => isBeyondAscii(value))
  );
}

function isBeyondAscii(value: HeaderValue): boolean {
  return Array.isArray(value) ? value.some(isBeyondAscii) : beyondAscii.test(String(value));
}

const beyondAscii = /[\x80-\xff]/;

/** The headers that are set on a response. */
export function headersOf(response: ServerResponse): HeldAnswer["headers"] {
  const headers: HeldAnswer["headers"] = [];
  for (const name of response.getHeaderNames()) {
    const value: unknown = response.getHeader(name);
    if (value !== undefined) headers.push([name, toHeaderValue(value)]);
  }
  return headers;
}

/** Node also takes a bigint, a date or `null`, and writes it as text. */
function toHeaderValue(value: unknown): HeaderValue {
  if (Array.isArray(value)) {
    return value.every((each) => typeof each === "string") ? value : value.map(String);
  }
  return typeof value === "string" || typeof value === "number" ? value : String(value);
}

/** Makes these headers the only ones that are set on a response; a correct one stays as written. */
export function replaceHeaders(response: ServerResponse, headers: HeldAnswer["headers"]): void {
  const wanted = new Map(headers);
  for (const name of response.getHeaderNames()) {
    if (!wanted.has(name)) response.removeHeader(name);
  }
  for (const [name, value] of headers) {
    if (response.getHeader(name) !== value) response.setHeader(name, value);
  }
}

/** Writes an answer as bytes: the length of its head in 4 bytes, its head as JSON, its body. */
export function encodeAnswer({ body, ...head }: HeldAnswer): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json, body]);
}

/** Reads an answer from its bytes. They are ours: the caller has authenticated them. */
export function decodeAnswer(bytes: Buffer): HeldAnswer {
  const bodyStart = 4 + bytes.readUInt32BE(0);
  const head: Omit<HeldAnswer, "body"> = JSON.parse(bytes.toString("utf8", 4, bodyStart));
  return { ...head, body: bytes.subarray(bodyStart) };
}

/** Sends status and body of an answer. Its headers are set on the response already. */
export function sendAnswer(response: ServerResponse, answer: HeldAnswer): void {
  const { status, statusMessage, trailers, body, headForm } = answer;
  response.statusCode = status;
  // Later code may have set another, such as Express for an error after the answer.
  response.statusMessage = statusMessage ?? "";
  const hasTrailers = isChunked(response) && trailers.length > 0;
  // Node refuses to announce trailers for a response without chunks.
  if (!isChunked(response)) response.removeHeader("Trailer");
  if (headForm !== undefined && !hasTrailers) {
    endInForm(response, body, headForm);
    return;
  }
  if (!hasTrailers) {
    endWith(response, asSent(body));
    return;
  }
  // Trailers need a body in chunks, which one complete write would not be.
  response.write(body);
  response.addTrailers(trailers);
  response.end();
}

/** A body as it is sent: bytes, or a text of ASCII, which has as many characters as bytes. */
export type SentBody = Buffer | string;

const maxText = 16_384;

/** Converts a short body of ASCII to a text: Node writes one together with the head. */
export function asSent(body: Buffer): SentBody {
  return body.length <= maxText && isAscii(body) ? body.toString("latin1") : body;
}

/**
 * Ends a response with a body. Where none may be sent (204, 304, HEAD), it sends the head alone: a
 * server may refuse more.
 */
export function endWith(response: ServerResponse, body: SentBody): void {
  const { req, statusCode } = response;
  if (statusCode === 204 || statusCode === 304) {
    response.end();
  } else if (req.method === "HEAD") {
    if (body.length > 0 && !response.hasHeader("Content-Length")) {
      response.setHeader("Content-Length", body.length);
    }
    response.end();
  } else if (typeof body === "string") {
    response.end(body, "latin1");
  } else {
    response.end(body);
  }
}

/** Ends a response whose head has other bytes by the way in which it is sent. */
function endInForm(response: ServerResponse, body: Buffer, form: HeadForm): void {
  if (form.knowsLength && hasBody(response)) {
    // A body of one text, whose bytes are UTF-8.
    if (form.encoding === "utf8") response.end(body.toString("utf8"), "utf8");
    else response.end(body);
    return;
  }
  const { statusCode } = response;
  const mayHaveLength = statusCode !== 204 && statusCode !== 304;
  if (mayHaveLength && body.length > 0 && !response.hasHeader("Content-Length")) {
    response.setHeader("Content-Length", body.length);
  }
  response.writeHead(statusCode);
  if (form.encoding === "utf8") response.flushHeaders();
  if (hasBody(response)) response.end(body);
  else response.end();
}
