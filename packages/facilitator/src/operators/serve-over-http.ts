import { once } from "node:events";
import { createServer } from "node:http";
import { answerOperator, type ServedOperations, sendAnswer } from "./answer-operator.ts";
import { holdStrangers } from "./hold-strangers.ts";
import { createKeyGuard, keyNameOf } from "./key-guard.ts";

/** Listener for the operator's commands over HTTP. */
export interface OperatorListener {
  host: string;
  port: number;
  /** Accepted keys. Two during a rotation. */
  keys: readonly string[];
}

/** Connections without a key yet. Those of the operator come on top. */
const maxStrangers = 64;
/** Bound of a whole request. Its head has to be there sooner. */
const requestTimeoutMs = 30_000;

/**
 * Serves the operator's commands over HTTP, to callers with a key: `Authorization: Bearer <key>`.
 * The listener and its origin are apart from the shop's. A caller without the key learns nothing:
 * its body is not read, and the connections of such callers keep none from the operator. Where the
 * port cannot be had, selling goes on, and the log has an error.
 */
export async function serveOverHttp(
  served: ServedOperations,
  options: { listener: OperatorListener; idleMs: number; now?: () => number },
): Promise<{ close(): Promise<void> }> {
  const { listener, idleMs, now = () => performance.now() } = options;
  const { host, port, keys } = listener;
  const { logger } = served;
  const guard = createKeyGuard({ keys, now });
  const server = createServer({ requestTimeout: requestTimeoutMs, headersTimeout: idleMs });
  const admit = holdStrangers(server, maxStrangers);
  server.on("request", (request, response) => {
    const { remoteAddress } = request.socket;
    const verdict = guard.check(remoteAddress, request.headers.authorization);
    if (verdict === "granted") {
      admit(request.socket);
      const actor = keyNameOf(request.headers.authorization);
      return void answerOperator(served, { via: "http", actor }, request, response);
    }
    if (verdict === "limited") {
      response.setHeader("Retry-After", "60");
      return sendAnswer(response, 429, {
        message: "Too many wrong keys: wait for a minute.",
        code: "too_many_wrong_keys",
      });
    }
    logger.warn({ remoteAddress }, "a caller of the operator's commands had no valid key");
    response.setHeader("WWW-Authenticate", 'Bearer realm="operators"');
    return sendAnswer(response, 401, {
      message: "The seller does not accept this key.",
      code: "unauthorized",
    });
  });
  server.setTimeout(idleMs);
  // A program that does not close its facilitator may end all the same.
  server.unref();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, "listening");
  } catch (err) {
    logger.error({ err, host, port }, "commands of the operator cannot be served over HTTP");
    return { close: async () => undefined };
  }
  logger.info({ address: server.address() }, "commands of the operator are served over HTTP");
  return {
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
