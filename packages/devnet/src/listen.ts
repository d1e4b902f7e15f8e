import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/** An HTTP server on a free loopback port. */
export interface Listening {
  url: string;
  port: number;
  close(): Promise<void>;
}

/**
 * Serves on a free loopback port until `close`, which also ends open connections.
 *
 * @param handler without it, the port is taken and no request is answered
 */
export async function listen(handler: RequestListener = () => undefined): Promise<Listening> {
  const server = createServer(handler);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
