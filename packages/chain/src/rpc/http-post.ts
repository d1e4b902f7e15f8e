import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { request as requestOverTls, Agent as TlsAgent } from "node:https";
import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip } from "node:zlib";

/** One POST of JSON. */
export interface HttpPostRequest {
  /** `http:` or `https:`, without user and password. */
  href: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Limit of the answer's body, decompressed. */
  maxResponseBytes: number;
  /** Ends the exchange at once; the request then rejects. */
  signal: AbortSignal;
}

/** Answer of a server, with any status. */
export interface HttpAnswer {
  status: number;
  /** Names in lower case. */
  headers: IncomingHttpHeaders;
  /** The whole body; `undefined` when it was larger than allowed. */
  text: string | undefined;
}

/** No connection was established, so nothing was sent. Its cause holds the reason. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";
}

/**
 * Sends a POST and reads its answer to the end. Rejects where there is no complete answer: with a
 * `NotConnectedError` where it is certain that the server has read nothing.
 */
export type HttpPost = (request: HttpPostRequest) => Promise<HttpAnswer>;

/**
 * Keep-alive limit. This process closes an idle connection before its server does so in the middle
 * of a request.
 */
const idleMs = 4_000;
/** A server could send them without an end, and one read of a socket holds thousands. */
const maxInterimAnswers = 16;
const agents = {
  "http:": new Agent({ keepAlive: true, timeout: idleMs }),
  "https:": new TlsAgent({ keepAlive: true, timeout: idleMs }),
};

/**
 * A POST by Node's own HTTP client, which follows no redirects. A redirect would carry the request,
 * and a key in its headers, to another host. The platform's `fetch` takes five times as long.
 */
export const httpPost: HttpPost = ({ href, headers, body, maxResponseBytes, signal }) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const url = new URL(href);
    const isSecure = url.protocol === "https:";
    const [send, agent] = isSecure
      ? [requestOverTls, agents["https:"]]
      : [request, agents["http:"]];
    const sent = send(url, {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        "accept-encoding": "gzip, br",
        // Some gateways refuse requests without a user agent.
        "user-agent": "coinslot",
        ...headers,
      },
    });
    const abort = () => sent.destroy();
    signal.addEventListener("abort", abort, { once: true });
    sent.once("close", () => signal.removeEventListener("abort", abort));
    // Node buffers writes until the connection stands, and the server's certificate has been
    // verified.
    let isConnected = false;
    const onConnected = () => {
      isConnected = true;
    };
    sent.once("socket", (socket) => {
      if (sent.reusedSocket) onConnected();
      else socket.once(isSecure ? "secureConnect" : "connect", onConnected);
    });
    sent.on("error", (cause) =>
      reject(isConnected ? cause : new NotConnectedError("No connection was made", { cause })),
    );
    let interimAnswers = 0;
    sent.on("information", () => {
      interimAnswers += 1;
      if (interimAnswers > maxInterimAnswers) sent.destroy(new Error("Too many interim answers"));
    });
    // A server that switches protocols unasked ends the connection with neither an answer nor an
    // error.
    const onEnd = () => reject(new Error("The connection ended without an answer"));
    sent.once("close", onEnd);
    sent.once("response", (response) => {
      sent.off("close", onEnd);
      const { statusCode: status = 0, headers } = response;
      readText(response, maxResponseBytes).then((text) => {
        // The rest of an answer that is too large is not read.
        if (text === undefined) sent.destroy();
        resolve({ status, headers, text });
      }, reject);
    });
    sent.end(body);
  });

function readText(response: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const body = unpack(response, reject);
    const chunks: Buffer[] = [];
    let size = 0;
    body.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) resolve(undefined);
      else chunks.push(chunk);
    });
    body.on("end", () => resolve(decodeUtf8(chunks, size)));
    body.on("error", reject);
  });
}

/** The decompressed body; an encoding that was not requested stays as it is. */
function unpack(response: IncomingMessage, onError: (error: Error) => void): Readable {
  const packing = response.headers["content-encoding"]?.trim().toLowerCase();
  const isEmpty = response.headers["content-length"] === "0";
  if (isEmpty || (packing !== "gzip" && packing !== "br")) return response;
  const unpacking = packing === "gzip" ? createGunzip() : createBrotliDecompress();
  return pipeline(response, unpacking, (error) => {
    if (error) onError(error);
  });
}

function decodeUtf8(chunks: readonly Buffer[], size: number): string {
  const [first] = chunks;
  const bytes = first?.length === size ? first : Buffer.concat(chunks, size);
  return new TextDecoder().decode(bytes);
}
