import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  Agent as HttpAgent,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Duplex } from "node:stream";
import { pairsOf, valuesOf } from "./end-to-end-headers.ts";
import { answerPlainly, type Forwarding, forwardRequest, maxHeadBytes } from "./forward-request.ts";
import type { Observer } from "./observer.ts";

/** A running proxy. */
export interface ProxyServer {
  url: string;
  /** Ends open exchanges, too. Idempotent. */
  close(): Promise<void>;
}

/**
 * Unused connections to the seller are closed before it closes them: a request on a connection that
 * is about to end would fail.
 */
const idleConnectionMs = 1_000;

/**
 * Starts a proxy before a seller, on a loopback address.
 *
 * @throws the error of the listener, such as `EADDRINUSE`
 */
export async function startProxy(options: {
  seller: URL;
  /** 0: any free port. */
  port: number;
  observer: Observer;
  now?: () => number;
}): Promise<ProxyServer> {
  const { seller, port, observer, now = Date.now } = options;
  const pseudonym = `coinslot-inspector-${randomBytes(3).toString("hex")}`;
  const agent = createAgent(seller);
  const forwarding: Forwarding = { seller, agent, pseudonym, now };

  function handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const refusal = findRefusal(incoming, pseudonym);
    if (refusal !== undefined) {
      incoming.resume();
      answerPlainly(outgoing, refusal.status, refusal.text);
      return;
    }
    const exchange = observer.open({
      method: incoming.method ?? "GET",
      target: incoming.url ?? "/",
      headers: pairsOf(incoming.rawHeaders),
      connection: `${incoming.socket.remoteAddress} ${incoming.socket.remotePort}`,
      at: now(),
    });
    forwardRequest(incoming, outgoing, exchange, forwarding);
  }

  // Requests and answers may stream for as long as buyer and seller like.
  const server = createServer({ maxHeaderSize: maxHeadBytes, requestTimeout: 0 }, handle);
  server.on("checkContinue", handle);
  server.on("connect", (_request, socket) => refuseTunnel(socket));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${taken}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        agent.destroy();
      }),
  };
}

function createAgent({ protocol }: URL): HttpAgent {
  const options = { keepAlive: true, timeout: idleConnectionMs };
  return protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
}

interface Refused {
  status: number;
  text: string;
}

/** Requests that cannot be passed on, or lead back here. */
function findRefusal(incoming: IncomingMessage, pseudonym: string): Refused | undefined {
  const { url = "", headers, rawHeaders } = incoming;
  const isPath = url.startsWith("/") || (url === "*" && incoming.method === "OPTIONS");
  if (!isPath) {
    const text = "The inspector stands before one seller, and forwards to no other: ask by a path.";
    return { status: 400, text };
  }
  if (valuesOf(pairsOf(rawHeaders), "host").length > 1) {
    return { status: 400, text: "The request has several Host headers." };
  }
  const upgrade = headers.upgrade?.toLowerCase() ?? "";
  // A client that offers HTTP/2 is content with an answer by HTTP/1.1.
  if (upgrade !== "" && upgrade !== "h2c") {
    const text = `The inspector passes no upgrade (${upgrade}): connect to the seller itself.`;
    return { status: 501, text: text.replace(/[^\x20-\x7e]/g, "?") };
  }
  if (headers.via?.includes(pseudonym)) {
    return { status: 508, text: "The inspector's seller is the inspector itself." };
  }
  return undefined;
}

function refuseTunnel(socket: Duplex): void {
  const text = "The inspector opens no tunnels.\n";
  const head = `HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n`;
  socket.on("error", () => undefined);
  socket.end(head + text);
}
