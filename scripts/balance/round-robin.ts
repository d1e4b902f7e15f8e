import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A load balancer that runs. */
export interface Balancer {
  url: string;
  /** Cuts all connections. */
  close(): Promise<void>;
}

/**
 * Balances connections on this machine, and reads nothing of their content. Each goes to the next
 * server in turn, or to the one after it where that takes none.
 *
 * @param options.backends ports of the servers
 */
export async function startBalancer(options: {
  /** 0: any free one. */
  port: number;
  backends: readonly number[];
}): Promise<Balancer> {
  const { backends } = options;
  const connections = new Set<Socket>();
  let turn = 0;

  const server = createServer((client) => {
    connections.add(client);
    client.on("close", () => connections.delete(client));
    client.on("error", () => client.destroy());
    turn += 1;
    lead(
      client,
      backends.map((_, index) => backends[(turn + index) % backends.length] ?? 0),
    );
  });
  server.listen(options.port, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.close();
      for (const connection of connections) connection.destroy();
      await once(server, "close");
    },
  };
}

/**
 * Joins a client with the first server that takes the connection, and ends the one with the other.
 */
function lead(client: Socket, [port, ...others]: readonly number[]): void {
  if (port === undefined) {
    client.destroy();
    return;
  }
  const backend = connect(port, "127.0.0.1");
  let isJoined = false;
  backend.once("connect", () => {
    isJoined = true;
    client.pipe(backend).pipe(client);
  });
  backend.on("error", () => {
    if (isJoined) client.destroy();
    else lead(client, others);
  });
  backend.on("close", () => isJoined && client.destroy());
  client.on("close", () => backend.destroy());
}
