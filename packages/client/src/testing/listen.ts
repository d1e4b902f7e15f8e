import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

/** An HTTP server on a free loopback port. */
export interface Listening {
  url: string;
  close(): Promise<void>;
}

/** A request with its body read. */
export interface ReceivedRequest {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

/** Serves on a free loopback port until `close`, which also ends open connections. */
export async function listen(
  handle: (request: ReceivedRequest, response: ServerResponse) => void | Promise<void>,
): Promise<Listening> {
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(Buffer.from(chunk));
    const { method = "", url = "", headers } = incoming;
    await handle({ method, url, headers, body: Buffer.concat(chunks).toString() }, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
