import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** Address of a server. */
export interface ListenOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  /** The settings of host and port, to be named where they are unusable. */
  variables: { host: string; port: string };
  /** Time for a whole request to come, in milliseconds. Default 30,000. */
  requestMs?: number | undefined;
}

/** A server that listens. */
export interface HttpServer {
  /** Its URL, such as `http://127.0.0.1:8080`. */
  url: string;
  /**
   * Takes no more connections, ends idle ones, and waits up to ten seconds for running requests. A
   * connection without a complete request head has one second. Idempotent.
   */
  close(): Promise<void>;
}

/** The server cannot listen there. The message gives the reason and the remedy. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

const drainMs = 10_000;
/**
 * Time for a request whose connection was accepted before the end. Node's server waits minutes for
 * a connection that sends no request, or half of one.
 */
const headMs = 1_000;

/** Node's own is five minutes, in which a peer may withhold the end of each of many bodies. */
const defaultRequestMs = 30_000;

/**
 * Serves HTTP.
 *
 * @example
 * ```ts
 * const server = await startHttpServer(app, {
 *   host: "127.0.0.1",
 *   port: 8080,
 *   variables: { host: "INDEXER_HOST", port: "INDEXER_PORT" },
 * });
 * console.log(server.url); // http://127.0.0.1:8080
 * await server.close(); // waits up to ten seconds for running requests
 * ```
 *
 * @throws ListenError if the port is taken, or not to be had
 */
export async function startHttpServer(
  listener: RequestListener,
  options: ListenOptions,
): Promise<HttpServer> {
  const { requestMs = defaultRequestMs } = options;
  const server = createServer({
    requestTimeout: requestMs,
    // Node's own, 30 seconds, would double the time.
    connectionsCheckingInterval: requestMs / 6,
  });
  const underWay = new Set<ServerResponse>();
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("request", (_request, response) => {
    underWay.add(response);
    response.once("close", () => underWay.delete(response));
    if (!server.listening) endWith(response);
  });
  server.on("request", listener);

  async function close(): Promise<void> {
    for (const response of underWay) endWith(response);
    await closeServer(server, () => {
      const busy = new Set([...underWay].map(({ req }) => req.socket));
      for (const socket of sockets) if (!busy.has(socket)) socket.destroy();
    });
  }
  try {
    return { url: await listen(server, options), close };
  } catch (error) {
    throw new ListenError(describeFault(error, options), { cause: error });
  }
}

/**
 * Closes the connection after its answer: a keep-alive connection would hold the server until its
 * timeout.
 */
function endWith(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader("Connection", "close");
}

function listen(server: Server, { host, port }: ListenOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      const address: AddressInfo | string | null = server.address();
      const actual = typeof address === "object" && address !== null ? address.port : port;
      resolve(`http://${host.includes(":") ? `[${host}]` : host}:${actual}`);
    });
  });
}

/** Waits for the answers that are under way, up to a bound. */
async function closeServer(server: Server, endIdle: () => void): Promise<void> {
  if (!server.listening) return;
  // Ends the connections that wait for their next request.
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const timers = [
    setTimeout(endIdle, headMs),
    setTimeout(() => server.closeAllConnections(), drainMs),
  ];
  await closed;
  for (const timer of timers) clearTimeout(timer);
}

function describeFault(error: unknown, { host, port, variables }: ListenOptions): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} on ${host} is in use. Stop its program, or set ${variables.port} to another.`;
    case "EACCES":
      return `Port ${port} on ${host} may not be opened by this user. Set ${variables.port} to one above 1023.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `${host} is not an address of this machine. Set ${variables.host} to one, or to 0.0.0.0 for all.`;
    default:
      return `Listening on ${host}:${port} failed: ${String(error)}`;
  }
}
