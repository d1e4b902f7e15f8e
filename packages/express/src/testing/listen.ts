import { createServer, type RequestListener } from "node:http";

/** An HTTP server on a free loopback port. */
export interface Listening {
  url: string;
  port: number;
  close(): Promise<void>;
}

/** Serves on a free loopback port until `close`, which also ends open connections. */
export async function listen(handler: RequestListener): Promise<Listening> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port");
  const { port } = address;
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
