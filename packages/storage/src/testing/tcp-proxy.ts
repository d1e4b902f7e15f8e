import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A way to a database that can be cut: a server that restarts, as its clients see it. */
export interface TcpProxy {
  /** The URL of the database by way of the proxy. */
  url: string;
  /** Breaks all connections, and refuses new ones. */
  cut(): Promise<void>;
  /** Silently drops all further bytes on open connections. */
  freeze(): void;
  /** Does that to the next connection whose client sends this text, and to no other. */
  freezeAt(text: string): void;
  /** Takes connections again, at the same port. */
  mend(): Promise<void>;
}

export async function startTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  let port = 0;
  let freezingText: string | undefined;

  async function listen() {
    const server = createServer((inbound) => {
      const outbound = connect(Number(targetPort), hostname);
      for (const socket of [inbound, outbound]) {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          inbound.destroy();
          outbound.destroy();
          sockets.delete(socket);
        });
      }
      inbound.pipe(outbound).pipe(inbound);
      inbound.on("data", (chunk: Buffer) => {
        if (freezingText === undefined || !chunk.includes(freezingText)) return;
        freezingText = undefined;
        for (const socket of [inbound, outbound]) socket.unpipe().pause();
      });
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (typeof address === "object" && address !== null) port = address.port;
    return server;
  }

  let server = await listen();
  async function cut(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of sockets) socket.resetAndDestroy();
    await closed;
  }
  onTestFinished(cut);

  const url = new URL(target);
  url.host = `127.0.0.1:${port}`;
  return {
    url: url.href,
    cut,
    freeze() {
      for (const socket of sockets) socket.unpipe().pause();
    },
    freezeAt(text) {
      freezingText = text;
    },
    async mend() {
      server = await listen();
    },
  };
}
