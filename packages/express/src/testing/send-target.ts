import { connect } from "node:net";
import type { Listening } from "@coinslot/devnet";

/**
 * Sends a request target as it is; resolves to the status and the body. It leaves its half of the
 * connection open: Node's server drops every later answer once a client has ended its own.
 */
export function sendTarget(
  { port }: Listening,
  target: string,
  {
    method = "GET",
    headers = {},
    body = "",
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; answer: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    socket.on("close", () => resolve({ status: Number(answer.split(" ")[1]), answer }));
    socket.on("error", reject);
    const lines = Object.entries({ Host: "shop", Connection: "close", ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}`).join("\r\n");
    socket.write(`${method} ${target} HTTP/1.1\r\n${head}\r\n\r\n${body}`, "latin1");
  });
}
