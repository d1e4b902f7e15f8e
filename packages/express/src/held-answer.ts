import { isAscii } from "node:buffer";
import type { ServerResponse } from "node:http";

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
  body: Buffer;
}

/** The headers that are set on a response. */
export function headersOf(response: ServerResponse): HeldAnswer["headers"] {
  return Object.entries(response.getHeaders()).flatMap(([name, value]): HeldAnswer["headers"] =>
    value === undefined ? [] : [[name, value]],
  );
}

/** Makes these headers the only ones that are set on a response; what is right stays as it is written. */
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

/** Reads an answer from its bytes. They are ours: somebody has authenticated them before. */
export function decodeAnswer(bytes: Buffer): HeldAnswer {
  const bodyStart = 4 + bytes.readUInt32BE(0);
  const head: Omit<HeldAnswer, "body"> = JSON.parse(bytes.toString("utf8", 4, bodyStart));
  return { ...head, body: bytes.subarray(bodyStart) };
}

/** Sends status and body of an answer. Its headers are set on the response already. */
export function sendAnswer(response: ServerResponse, answer: HeldAnswer): void {
  const { status, statusMessage, trailers, body } = answer;
  response.statusCode = status;
  // Somebody may have written another since, such as Express for an error after the answer.
  response.statusMessage = statusMessage ?? "";
  const isChunked = canBeChunked(response);
  // Node refuses to announce trailers where there can be none.
  if (!isChunked) response.removeHeader("Trailer");
  if (!isChunked || trailers.length === 0) {
    endWith(response, body);
    return;
  }
  // Trailers need a body in chunks, which one complete write would not be.
  response.write(body);
  response.addTrailers(trailers);
  response.end();
}

/** Ends a response with a body, or with what stands for it where there is none: a server may refuse more. */
export function endWith(response: ServerResponse, body: Buffer): void {
  const { req, statusCode } = response;
  if (statusCode === 204 || statusCode === 304) {
    response.end();
  } else if (req.method === "HEAD") {
    if (body.length > 0 && !response.hasHeader("Content-Length")) {
      response.setHeader("Content-Length", body.length);
    }
    response.end();
  } else if (body.length <= longestText && isAscii(body)) {
    // Node writes a text together with the head, and bytes after it.
    response.end(body.toString("latin1"), "latin1");
  } else {
    response.end(body);
  }
}

const longestText = 16_384;

function canBeChunked(response: ServerResponse): boolean {
  const { req, statusCode } = response;
  const hasBody = req.method !== "HEAD" && statusCode !== 204 && statusCode !== 304;
  return hasBody && req.httpVersion !== "1.0" && !response.hasHeader("Content-Length");
}
