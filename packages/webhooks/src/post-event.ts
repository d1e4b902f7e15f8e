import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { finished } from "node:stream";

/** Sends a body to a URL; resolves with the status of the answer. Rejects without one in time. */
export type PostEvent = (letter: {
  url: URL;
  headers: Record<string, string>;
  body: string;
}) => Promise<number>;

const maxReceiverAnswerBytes = 16 * 2 ** 10;
/** A receiver could send them without an end, and one read of a socket holds thousands. */
const maxInterimAnswers = 16;
const maxIdleSocketsPerHost = 8;
/** Below the five seconds after which most servers close an idle connection. */
const idleMs = 4_000;

/**
 * Creates the HTTP client for events. The whole exchange has one deadline; redirects are not
 * followed. Only the status of the answer counts. Its body is read, up to a bound, only to keep the
 * connection reusable.
 */
export function createPoster(options: {
  timeoutMs: number;
  /** Default: the system's lookup. */
  lookup: LookupFunction | undefined;
  /** Once aborted, connections are closed, also those under way. */
  signal?: AbortSignal | undefined;
}): PostEvent {
  const { timeoutMs, lookup } = options;
  const shared = {
    keepAlive: true,
    timeout: idleMs,
    maxFreeSockets: maxIdleSocketsPerHost,
    ...(lookup && { lookup }),
  };
  const agents = { http: new HttpAgent(shared), https: new HttpsAgent(shared) };
  options.signal?.addEventListener("abort", close, { once: true });

  function close(): void {
    agents.http.destroy();
    agents.https.destroy();
  }

  function exchange({ url, headers, body }: Parameters<PostEvent>[0]): Promise<number> {
    const isSecure = url.protocol === "https:";
    const signal = AbortSignal.timeout(timeoutMs);
    return new Promise((resolve, reject) => {
      const sent = (isSecure ? httpsRequest : httpRequest)(url, {
        method: "POST",
        agent: isSecure ? agents.https : agents.http,
        headers: { ...headers, "Content-Length": Buffer.byteLength(body) },
        signal,
      });
      let isAnswered = false;
      sent.on("response", (response) => {
        isAnswered = true;
        readAway(response);
        finished(response, () => resolve(response.statusCode ?? 0));
      });
      let interimAnswers = 0;
      sent.on("information", () => {
        interimAnswers += 1;
        if (interimAnswers <= maxInterimAnswers) return;
        const error = new Error("The receiver sends interim answers alone");
        sent.destroy(Object.assign(error, { code: "EPROTO" }));
      });
      // A switch to another protocol has no answer after it, and Node tells of no error.
      sent.on("upgrade", (response, socket) => {
        socket.destroy();
        resolve(response.statusCode ?? 0);
      });
      sent.on("close", () => {
        if (!isAnswered) reject(new Error("The connection has ended without an answer"));
      });
      sent.on("error", (error) => {
        // The receiver closed an idle connection just before its reuse: not its answer to this
        // event.
        if (sent.reusedSocket && !signal.aborted) reject(new StaleConnectionError(error));
        else reject(error);
      });
      sent.end(body);
    });
  }

  return async function postEvent(letter) {
    try {
      return await exchange(letter);
    } catch (error) {
      if (error instanceof StaleConnectionError) return exchange(letter);
      throw error;
    }
  };
}

/** Drains an unused body, and cuts one that is too long. */
function readAway(response: IncomingMessage): void {
  let size = 0;
  response.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxReceiverAnswerBytes) response.destroy();
  });
}

class StaleConnectionError extends Error {
  override readonly name = "StaleConnectionError";

  constructor(cause: unknown) {
    super("A connection that was kept had been closed", { cause });
  }
}
