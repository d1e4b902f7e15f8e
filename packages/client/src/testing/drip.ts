import type { ServerResponse } from "node:http";

const pauseMs = 20;

/** Answers with headers, and a body of spaces that ends with the connection alone. */
export function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const drops = setInterval(() => response.write(" "), pauseMs);
  response.once("close", () => clearInterval(drops));
}
